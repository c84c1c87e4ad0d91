/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-metrics.h"

#include "handler/hands/test-fake-pod.h"
#include "handler/hands/test-vhostmd.h"
#include "lib/base/fd.h"

#define DISKS     "run/kubevirt-private/downwardapi-disks"
#define DISK      DISKS "/vhostmd0"
#define CHANNEL   "run/kubevirt-private/downwardmetrics-channel"
#define DISK_SIZE 262144

/* What vhostmd itself puts on a disk, with its header worked out by hand. */
static const uint8_t real_header[] = {
    0x6d, 0x76, 0x62, 0x64, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x1c, 0x1f, 0x00, 0x00, 0x06, 0xac};
static const char real_body[] =
    "<metrics>\n"
    "  <metric type='string' context='host'>\n"
    "    <name>HostName</name>\n"
    "    <value>host01.example</value>\n"
    "  </metric>\n"
    "  <metric type='string' context='host'>\n"
    "    <name>HostSystemInfo</name>\n"
    "    <value>Linux</value>\n"
    "  </metric>\n"
    "  <metric type='string' context='host'>\n"
    "    <name>VirtualizationVendor</name>\n"
    "    <value>QEMU &amp; KVM</value>\n"
    "  </metric>\n"
    "  <metric type='string' context='host'>\n"
    "    <name>VirtProductInfo</name>\n"
    "    <value>qemu 7.2</value>\n"
    "  </metric>\n"
    "  <metric type='uint32' context='host'>\n"
    "    <name>NumberOfPhysicalCPUs</name>\n"
    "    <value>2</value>\n"
    "  </metric>\n"
    "  <metric type='real64' context='host' unit='s'>\n"
    "    <name>TotalCPUTime</name>\n"
    "    <value>179645.910000</value>\n"
    "  </metric>\n"
    "  <metric type='uint64' context='host' unit='KiB'>\n"
    "    <name>FreePhysicalMemory</name>\n"
    "    <value>1048576</value>\n"
    "  </metric>\n"
    "  <metric type='uint64' context='host' unit='KiB'>\n"
    "    <name>FreeVirtualMemory</name>\n"
    "    <value>2097152</value>\n"
    "  </metric>\n"
    "  <metric type='uint64' context='host' unit='KiB'>\n"
    "    <name>MemoryAllocatedToVirtualServers</name>\n"
    "    <value>786432</value>\n"
    "  </metric>\n"
    "  <metric type='uint64' context='host' unit='KiB'>\n"
    "    <name>UsedVirtualMemory</name>\n"
    "    <value>524288</value>\n"
    "  </metric>\n"
    "  <metric type='uint64' context='host' unit='KiB'>\n"
    "    <name>PagedInMemory</name>\n"
    "    <value>17</value>\n"
    "  </metric>\n"
    "  <metric type='uint64' context='host' unit='KiB'>\n"
    "    <name>PagedOutMemory</name>\n"
    "    <value>0</value>\n"
    "  </metric>\n"
    "  <metric type='int64' context='host' unit='s'>\n"
    "    <name>Time</name>\n"
    "    <value>1764549600</value>\n"
    "  </metric>\n"
    "  <metric type='real64' context='vm' id='7' uuid='cafe' unit='s'>\n"
    "    <name>TotalCPUTime</name>\n"
    "    <value>12.340000</value>\n"
    "  </metric>\n"
    "</metrics>\n";

typedef struct {
    FakePod pod;
    int root_fd;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autofree char *zeros = g_malloc0(DISK_SIZE);
    g_autofree char *path = NULL;

    f->root_fd = -EBADF;
    if (geteuid() != 0)
        return;
    fake_pod_init(&f->pod);
    test_tree_write(f->pod.dir, "victim", "the host's");
    test_tree_mkdir(f->pod.root, DISKS);
    test_tree_mkdir(f->pod.root, CHANNEL);
    path = fake_pod_path(&f->pod, DISK);
    g_assert_true(g_file_set_contents(path, zeros, DISK_SIZE, NULL));
    f->root_fd = open(f->pod.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(f->root_fd, >=, 0);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (f->root_fd < 0)
        return;
    g_assert_cmpint(test_tree_stat(f->pod.dir, "victim").st_size, ==, strlen("the host's"));
    close(f->root_fd);
    fake_pod_clear(&f->pod);
}

/* Returns the reply's errno. */
static int
write_body(const Fixture *f, const char *body)
{
    ChHandsReply reply = {0};

    g_assert_true(ch_inside_write_metrics(f->root_fd, body, strlen(body), &reply) ==
                  (reply.errnum == 0));
    return reply.errnum;
}

/* (transfer full) */
static char *
read_disk(const Fixture *f)
{
    g_autofree char *path = fake_pod_path(&f->pod, DISK);
    char *bytes;
    gsize size;

    g_assert_true(g_file_get_contents(path, &bytes, &size, NULL));
    g_assert_cmpuint(size, ==, DISK_SIZE);
    return bytes;
}

static const struct {
    const char *type, *context, *name, *value;
} real_metrics[] = {
    {"string", "host", "HostName", "host01.example"},
    {"string", "host", "HostSystemInfo", "Linux"},
    {"string", "host", "VirtualizationVendor", "QEMU & KVM"},
    {"string", "host", "VirtProductInfo", "qemu 7.2"},
    {"uint32", "host", "NumberOfPhysicalCPUs", "2"},
    {"real64", "host", "TotalCPUTime", "179645.910000"},
    {"uint64", "host", "FreePhysicalMemory", "1048576"},
    {"uint64", "host", "FreeVirtualMemory", "2097152"},
    {"uint64", "host", "MemoryAllocatedToVirtualServers", "786432"},
    {"uint64", "host", "UsedVirtualMemory", "524288"},
    {"uint64", "host", "PagedInMemory", "17"},
    {"uint64", "host", "PagedOutMemory", "0"},
    {"int64", "host", "Time", "1764549600"},
    {"real64", "vm", "TotalCPUTime", "12.340000"},
};

/* spec:05-16.10#187: byte for byte what vhostmd writes, from which a guest reads its 14 metrics */
static void
test_real(Fixture *f, gconstpointer data)
{
    g_autofree char *disk = NULL;
    g_autoptr(GPtrArray) metrics = NULL;

    if (fake_pod_skip())
        return;
    g_assert_cmpint(write_body(f, real_body), ==, 0);
    disk = read_disk(f);
    g_assert_cmpint(memcmp(disk, real_header, sizeof(real_header)), ==, 0);
    g_assert_cmpint(memcmp(disk + 16, real_body, strlen(real_body)), ==, 0);
    metrics = vhostmd_read_disk(disk, DISK_SIZE);
    g_assert_cmpuint(metrics->len, ==, G_N_ELEMENTS(real_metrics));
    for (guint i = 0; i < metrics->len; i++) {
        const VhostmdMetric *metric = metrics->pdata[i];

        g_assert_cmpstr(metric->type, ==, real_metrics[i].type);
        g_assert_cmpstr(metric->context, ==, real_metrics[i].context);
        g_assert_cmpstr(metric->name, ==, real_metrics[i].name);
        g_assert_cmpstr(metric->value, ==, real_metrics[i].value);
    }
}

/* spec:05-16.10#188 */
static void
test_empty(Fixture *f, gconstpointer data)
{
    g_autofree char *disk = NULL;
    g_autoptr(GPtrArray) metrics = NULL;

    if (fake_pod_skip())
        return;
    g_assert_cmpint(write_body(f, "<metrics></metrics>\n"), ==, 0);
    disk = read_disk(f);
    metrics = vhostmd_read_disk(disk, DISK_SIZE);
    g_assert_cmpuint(metrics->len, ==, 0);
}

/* spec:05-16.10#189: longer and shorter ones, what an earlier one left included */
static void
test_rounds(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    for (int round = 0; round < 5; round++) {
        g_autofree char *long_value = g_strnfill(round % 2 == 0 ? 5000 : 3, 'x');
        g_autofree char *value = g_strdup_printf("%s%d", long_value, round);
        g_autofree char *body =
            g_strdup_printf("<metrics><metric type=\"string\" context=\"vm\" "
                            "unit=\"u\"><name>N</name><value>%s</value></metric></metrics>\n",
                            value);
        g_autofree char *disk = NULL;
        g_autoptr(GPtrArray) metrics = NULL;
        const VhostmdMetric *metric;

        g_assert_cmpint(write_body(f, body), ==, 0);
        disk = read_disk(f);
        g_assert_cmpint(memcmp(disk + 16, body, strlen(body)), ==, 0);
        metrics = vhostmd_read_disk(disk, DISK_SIZE);
        g_assert_cmpuint(metrics->len, ==, 1);
        metric = metrics->pdata[0];
        g_assert_cmpstr(metric->type, ==, "string");
        g_assert_cmpstr(metric->context, ==, "vm");
        g_assert_cmpstr(metric->unit, ==, "u");
        g_assert_cmpstr(metric->name, ==, "N");
        g_assert_cmpstr(metric->value, ==, value);
    }
}

/* Bytes count as unsigned, also in the sum of many. */
static void
test_header(void)
{
    static const uint8_t body[] = {0xff, 0x80, 0x01};
    static const uint8_t expect[] = {'m', 'v', 'b', 'd', 0, 0, 0, 1, 0, 0, 1, 0x80, 0, 0, 0, 3};
    uint8_t header[CH_METRICS_HEADER_SIZE];

    ch_inside_metrics_header(header, body, sizeof(body), true);
    g_assert_cmpint(memcmp(header, expect, sizeof(expect)), ==, 0);
}

static void
test_too_large(Fixture *f, gconstpointer data)
{
    g_autofree char *fits = g_strnfill(CH_METRICS_MAX_BODY, 'x');
    g_autofree char *too_large = g_strnfill(CH_METRICS_MAX_BODY + 1, 'x');
    g_autofree char *disk = NULL;

    if (fake_pod_skip())
        return;
    g_assert_cmpint(write_body(f, too_large), ==, EFBIG);
    disk = read_disk(f);
    g_assert_true(disk[0] == '\0'); /* untouched */
    g_assert_cmpint(write_body(f, fits), ==, 0);
}

/* No disk is made, and nothing but a disk is written to. */
static void
test_no_disk(Fixture *f, gconstpointer data)
{
    g_autofree char *path = NULL;
    g_autofree char *other = NULL;
    g_autofree char *victim = NULL;

    if (fake_pod_skip())
        return;
    path = fake_pod_path(&f->pod, DISK);
    other = fake_pod_path(&f->pod, "run/other");
    victim = g_build_filename(f->pod.dir, "victim", NULL);
    g_assert_cmpint(link(path, other), ==, 0);
    g_assert_cmpint(write_body(f, "x\n"), ==, EINVAL); /* another name */
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(write_body(f, "x\n"), ==, ENOENT);
    g_assert_cmpint(symlink(victim, path), ==, 0);
    g_assert_cmpint(write_body(f, "x\n"), ==, ELOOP);
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(mkfifo(path, 0666), ==, 0);
    g_assert_cmpint(write_body(f, "x\n"), ==, EINVAL);
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(mkdir(path, 0777), ==, 0);
    g_assert_cmpint(write_body(f, "x\n"), ==, EINVAL);
    g_assert_cmpint(rmdir(path), ==, 0);
}

static int
connect_channel(const Fixture *f, int *out_fd)
{
    ChHandsReply reply = {0};

    *out_fd = -EBADF;
    g_assert_true(ch_inside_connect_metrics(f->root_fd, out_fd, &reply) == (reply.errnum == 0));
    return reply.errnum;
}

static void
test_channel(Fixture *f, gconstpointer data)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = NULL;
    ch_autofd int fd = -EBADF;
    ch_autofd int peer_fd = -EBADF;
    int listen_fd;

    if (fake_pod_skip())
        return;
    dir = fake_pod_path(&f->pod, CHANNEL);
    path = g_build_filename(dir, "downwardmetrics.sock", NULL);
    g_assert_cmpint(connect_channel(f, &fd), ==, ENOENT);
    g_assert_cmpint(symlink("/run/x", path), ==, 0);
    g_assert_cmpint(connect_channel(f, &fd), ==, ELOOP);
    listen_fd = fake_pod_listen(dir, "downwardmetrics.sock");
    g_assert_cmpint(connect_channel(f, &fd), ==, 0);
    g_assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    peer_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(write(fd, "hello", 5), ==, 5);
    ch_close_fd(&fd);
    close(listen_fd);
    g_assert_cmpint(connect_channel(f, &fd), ==, ECONNREFUSED); /* nobody listens any more */
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/inside-metrics/header", test_header);
#define ADD(path, func) g_test_add(path, Fixture, NULL, set_up, func, tear_down)
    ADD("/inside-metrics/as-vhostmd-writes", test_real);
    ADD("/inside-metrics/empty", test_empty);
    ADD("/inside-metrics/five-rounds", test_rounds);
    ADD("/inside-metrics/too-large", test_too_large);
    ADD("/inside-metrics/no-disk", test_no_disk);
    ADD("/inside-metrics/channel", test_channel);
#undef ADD
    return g_test_run();
}
