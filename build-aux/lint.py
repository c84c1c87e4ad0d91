#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""House lint: the rules of style.md that no compiler checks. Each rule says why it is there.

usage: lint.py [ROOT]        prints FILE:LINE: RULE: what, one a line; exit status 1 if there is one

A line that has a good reason to break a rule ends with a comment `lint: RULE, the reason`.
"""

import os
import re
import sys

SOURCE_DIRS = ['src', 'proto', 'tests', 'build-aux', 'bench', 'examples', '.ci']
README_DIRS = ['src', 'tests', 'docs', 'build-aux', 'bench', 'examples', 'proto']
SPDX = 'SPDX-License-Identifier: Apache-2.0'
SPDX_SUFFIXES = ('.c', '.h', '.py', '.sh', '.proto', 'meson.build')
SPDX_LINES = 3  # a #! line may come first

# Banned calls: (functions, files that may call them, reason).
BANNED = [
    ('strcpy strcat sprintf vsprintf gets', '', 'no bound; use GString or g_snprintf()'),
    ('strtok strtok_r', '', 'writes into its input and loses empty fields; use g_strsplit()'),
    ('atoi atol atoll', '', 'no error; use g_ascii_string_to_signed()'),
    ('system popen', '', 'starts a shell'),
    ('usleep sleep nanosleep g_usleep', '', 'every wait has a deadline and an owner; use a timer'),
    ('fork vfork clone3', 'src/lib/linux/ src/handler/hands/',
     "other threads' locks are frozen in the child (style 3.10)"),
    ('g_idle_add g_timeout_add g_main_context_invoke g_main_loop_new', '',
     "GLib's main loop does not run here; use lib/io's loop (style 3.9)"),
    ('g_mutex_lock g_rec_mutex_lock g_cond_wait g_cond_wait_until g_rw_lock_reader_lock g_rw_lock_writer_lock '
     'g_async_queue_new g_thread_pool_new', '', "TSan does not see a hand-off inside GLib; use pthread's (style 3.9)"),
    ('setenv putenv chdir umask seteuid setegid setlocale', 'src/handler/hands/ src/lib/linux/',
     'process-wide (style 3.9)'),
    ('strerror getpwnam getgrnam localtime gmtime', '', 'not thread-safe; g_strerror(), _r variants'),
    ('mount umount umount2 setns unshare pivot_root chroot bpf ioctl open_tree move_mount mount_setattr',
     'src/lib/linux/ src/handler/hands/', 'privilege stays in lib/linux and the hands (style 3.10)'),
]
# Tests make nodes of their own (DESIGN.md 8), play peers, and run alone in their process.
ALLOWED_IN_TESTS = set('fork setenv umask chdir sleep usleep g_usleep nanosleep mount umount umount2 setns unshare '
                       'chroot pivot_root ioctl'.split())

# What a pure file may neither include nor call (style 3.1, 3.8).
PURE = re.compile(r'^src/handler/reconcile/(decide|status)[a-z0-9-]*\.[ch]$')
PURE_ROOMS = {'lib/base', 'lib/json'}
PURE_BANNED = re.compile(r'\b(ch_time_now_us|ch_time_wall_us|ch_log_\w+|g_random_\w+|g_thread_\w+|open|read|write)\s*\(')

TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
WAIVER = re.compile(r'lint: ([a-z-]+), [^\s*]')
UNSET_ERROR = re.compile(r'^\s+(?:g_autoptr\(GError\)|GError\s*\*)\s*\w+\s*;', re.M)
STRCMP_EQUAL = re.compile(r'(!\s*strcmp\s*\(|\bstrcmp\s*\((?:[^()]|\([^()]*\))*\)\s*[!=]=)')
UNFINISHED = re.compile(r'\b(?:TO' r'DO|FIX' r'ME|XX' r'X)\b(?!\(#\d+\))')
TOPIC = re.compile(r'\A/\*[^\n]*\*/\n\n/\*(?:\n \*)? (\S+): \S')


FLAGS = 'src/handler/config/flags.c'
FLAG_ROW = re.compile(r'\{"([a-z-]+)",\s*FLAG_\w+,\s*FIELD\((\w+)\),[^\n]*?\b(true|false),\s*"[^"\n]*"\},')


class Lint:
    def __init__(self, root):
        self.root = root
        self.files = {}  # path -> text
        self.rooms = {}  # 'lib/base' -> {'modules': [...], 'tests': [...], 'uses': [...], 'programs': [...]}
        self.found = []

    def report(self, path, offset, rule, what):
        text = self.files.get(path, '')
        line = text.count('\n', 0, offset) + 1
        lines = text.split('\n')
        waiver = WAIVER.search(lines[line - 1]) if line <= len(lines) else None
        if not (waiver and waiver.group(1) == rule):
            self.found.append((path, line, rule, what))

    def load(self):
        for top in SOURCE_DIRS:
            for folder, subfolders, names in os.walk(os.path.join(self.root, top)):
                subfolders[:] = [s for s in subfolders if s not in ('__pycache__', 'corpus', 'data')]
                for name in names:
                    full = os.path.join(folder, name)
                    if name.endswith(SPDX_SUFFIXES) and os.path.isfile(full):
                        with open(full, encoding='utf-8', errors='replace') as file:
                            self.files[os.path.relpath(full, self.root)] = file.read()
        for path, text in self.files.items():
            if path.startswith('src/') and path.count('/') > 1 and path.endswith('/meson.build'):
                self.rooms[path[len('src/'):-len('/meson.build')]] = parse_room(text)

    def room_of(self, path):
        folder = os.path.dirname(path)
        return folder[len('src/'):] if folder.startswith('src/') and folder[len('src/'):] in self.rooms else None

    def run(self):
        self.load()
        for path in sorted(self.files):
            check_spdx(self, path)
            check_todo(self, path)
            if path.endswith(('.c', '.h')):
                check_code(self, path)
            if path.endswith('.h'):
                check_header(self, path)
            if path.startswith('src/') and path.endswith(('.c', '.h')):
                check_includes(self, path)
        for room in sorted(self.rooms):
            check_room(self, room)
        check_flags(self)
        check_readmes(self)
        return self.found


def parse_room(text):
    text = re.sub(r'#[^\n]*', '', text)
    room = {'modules': [], 'tests': [], 'uses': [], 'programs': []}
    for name, value in re.findall(r'^(modules|tests|uses|(?:static_)?programs)\s*\+?=\s*(\[.*?\]|\{.*?\})', text, re.M | re.S):
        room[name.replace('static_', '')] += re.findall(r"'([^']+)'", value)
    return room


def blank(text, keep_strings=False):
    """Comments (and strings) as spaces, so that offsets and lines stay."""
    def spaces(match):
        if keep_strings and match.group(0)[0] in '"\'':
            return match.group(0)
        return re.sub(r'[^\n]', ' ', match.group(0))
    return TOKENS.sub(spaces, text)


def check_spdx(lint, path):
    """The license of each file is known without its repository (REUSE)."""
    if SPDX not in '\n'.join(lint.files[path].split('\n')[:SPDX_LINES]):
        lint.report(path, 0, 'spdx', 'no SPDX line')


def check_todo(lint, path):
    """What is left to do is an issue, or it is forgotten."""
    for match in UNFINISHED.finditer(lint.files[path]):
        lint.report(path, match.start(), 'todo', 'write an issue and name it: WORD(#n)')


BANNED_CALL = re.compile(r'(?<![\w.>])(%s)\s*\(' % '|'.join(name for row in BANNED for name in row[0].split()))
BANNED_ROW = {name: row for row in BANNED for name in row[0].split()}


def check_code(lint, path):
    """Calls that have a better wrapper, or belong to one place."""
    is_test = path.startswith('tests/') or os.path.basename(path).startswith('test-')
    code = blank(lint.files[path])
    for match in BANNED_CALL.finditer(code):
        name = match.group(1)
        _, places, reason = BANNED_ROW[name]
        if not path.startswith(tuple(places.split()) or ('/',)) and not (is_test and name in ALLOWED_IN_TESTS):
            lint.report(path, match.start(), 'banned-call', '%s(): %s' % (name, reason))
    for match in STRCMP_EQUAL.finditer(code):
        lint.report(path, match.start(), 'strcmp', 'g_str_equal() or g_strcmp0() reads as what it is')
    for match in UNSET_ERROR.finditer(code):
        start = match.end() - len(match.group(0).lstrip())
        if not re.search(r'(struct|union)[^;{}]*\{[^{}]*\Z', code[:start]):
            lint.report(path, start, 'unset-error', 'a GError * starts as NULL')
    if PURE.match(path):
        for match in PURE_BANNED.finditer(code):
            lint.report(path, match.start(), 'pure', '%s() in a pure file' % match.group(1))


def check_header(lint, path):
    """A header begins with what it is for: `name: purpose`."""
    text = lint.files[path]
    stem = os.path.basename(path)[:-2]
    topic = TOPIC.match(text)
    if topic is None:
        lint.report(path, 0, 'topic', 'no topic comment "%s: ..." behind the SPDX line' % stem)
    elif topic.group(1) != stem:
        lint.report(path, topic.start(1), 'topic', 'the topic is called "%s", not "%s"' % (stem, topic.group(1)))
    if not re.search(r'^#pragma once$', text, re.M):
        lint.report(path, 0, 'pragma-once', 'no #pragma once')


def check_includes(lint, path):
    """Dependencies point one way (DESIGN.md 3): a room includes itself and what its meson.build uses."""
    room = lint.room_of(path)
    if room is None:
        return
    name = os.path.basename(path)
    allowed = {room, *lint.rooms[room]['uses']}
    code = blank(lint.files[path], keep_strings=True)
    includes = list(INCLUDE.finditer(code))
    for match in includes:
        target_room, target = os.path.split(match.group(1))
        if target == 'main.h' or (target_room in lint.rooms and target == 'main.c'):
            lint.report(path, match.start(1), 'include', 'nothing includes main')
        if target_room not in lint.rooms:
            continue
        if target_room not in allowed:
            lint.report(path, match.start(1), 'include', "%s does not use '%s'" % (room, target_room))
        if PURE.match(path) and target_room not in PURE_ROOMS | {room}:
            lint.report(path, match.start(1), 'pure', "a pure file includes '%s'" % target_room)
        if target.endswith('-internal.h'):
            family = target[:-len('-internal.h')]
            if target_room != room or not name.startswith((family, 'test-' + family)):
                lint.report(path, match.start(1), 'include', '%s belongs to %s*.c of its room' % (target, family))
    own = 'src/%s/%s.h' % (room, name[:-2])
    if name.endswith('.c') and own in lint.files and includes and 'src/' + includes[0].group(1) != own:
        lint.report(path, includes[0].start(1), 'own-header', 'its own header comes first, to prove it self-contained')


def check_room(lint, room):
    """A file that is not listed is not built, a test without module never runs; both look like they were."""
    folder = 'src/' + room
    build = folder + '/meson.build'
    listed = {module + '.c' for module in lint.rooms[room]['modules']} | set(lint.rooms[room]['programs'])
    present = {os.path.basename(path) for path in lint.files if os.path.dirname(path) == folder and path.endswith('.c')}
    for name in sorted(present - listed):
        if not name.startswith('test-'):
            lint.report('%s/%s' % (folder, name), 0, 'unlisted', 'not in %s' % build)
        elif name[len('test-'):] not in listed and name[len('test-'):-2] not in lint.rooms[room]['tests']:
            lint.report('%s/%s' % (folder, name), 0, 'unlisted', 'no module %s in %s' % (name[len('test-'):-2], build))
    for used in lint.rooms[room]['uses']:
        top, used_top = room.split('/')[0], used.split('/')[0]
        if used_top not in ('lib', top) or used not in lint.rooms:
            lint.report(build, lint.files[build].find("'%s'" % used), 'direction', "%s cannot use '%s'" % (room, used))


def check_readmes(lint):
    """A newcomer finds out by the folder what is in it."""
    for top in README_DIRS:
        for folder, subfolders, names in os.walk(os.path.join(lint.root, top)):
            subfolders[:] = [s for s in subfolders if s not in ('__pycache__', 'corpus', 'data')]
            if names and 'README.md' not in names:
                lint.report(os.path.relpath(folder, lint.root), 0, 'readme', 'the folder has no README.md')


def check_flags(lint):
    """A flag whose feature is there is read somewhere; one without is said to be without."""
    texts = [text for path, text in lint.files.items() if path.startswith('src/handler/') and path != FLAGS
             and not os.path.basename(path).startswith('test-')]
    for match in FLAG_ROW.finditer(lint.files.get(FLAGS, '')):
        name, field, is_built = match.groups()
        is_read = any(re.search(r'flags->%s\b' % field, text) for text in texts)
        if is_read != (is_built == 'true'):
            lint.report(FLAGS, match.start(), 'flag', "--%s is %s, and %sread" % (
                name, 'built' if is_built == 'true' else 'not built', '' if is_read else 'not '))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = Lint(root).run()
    for path, line, rule, what in found:
        print('%s:%d: %s: %s' % (path, line, rule, what))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
