#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of guest/build.sh: two at once do not build in the same place."""
import fcntl
import os
import subprocess
import tempfile
import time
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest", "build.sh")
STUBS = {
    "apt-cache": "echo '  Depends: linux-image-1-stub'",
    "apt-get": 'touch "$MARK"; exit 1',  # the download: what building begins with
    "dpkg-query": "echo package 1",
}


class Lock(unittest.TestCase):
    def test_second_waits_for_the_first(self):
        with tempfile.TemporaryDirectory() as folder:
            mark, cache = os.path.join(folder, "mark"), os.path.join(folder, "cache")
            os.mkdir(cache)
            for name, script in STUBS.items():
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/sh\n{script}\n")
                os.chmod(path, 0o755)
            environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", MARK=mark)
            with open(os.path.join(cache, "lock"), "w", encoding="utf-8") as first:
                fcntl.flock(first, fcntl.LOCK_EX)
                with subprocess.Popen([SCRIPT, os.path.join(folder, "images"), cache], env=environment, text=True,
                                      stderr=subprocess.PIPE) as second:
                    self.assertIn("waiting for another build", second.stderr.readline())
                    time.sleep(0.3)
                    self.assertFalse(os.path.exists(mark))
                    fcntl.flock(first, fcntl.LOCK_UN)
                    self.assertIn("could not be downloaded", second.communicate(timeout=60)[1])
                    self.assertTrue(os.path.exists(mark))


if __name__ == "__main__":
    unittest.main()
