#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of lint.py: each rule finds its offender, and nothing in a clean tree."""

import os
import tempfile
import unittest

import lint

C = '/* SPDX-License-Identifier: Apache-2.0 */\n\n'
CLEAN = {
    'src/lib/base/meson.build': "# SPDX-License-Identifier: Apache-2.0\nmodules = [\n  'a', # not 'b'\n]\nuses = []\n",
    'src/lib/base/a.h': C + '/*\n * a: what it is for.\n */\n\n#pragma once\n',
    'src/lib/base/a.c': C + '#include "lib/base/a.h"\n\nint x; /* fork() "TO" */\nconst char *s = "system(";\n',
    'src/lib/base/test-a.c': C + '#include "lib/base/a.h"\n\nvoid f(void)\n{\n    sleep(1);\n}\n',
    'src/lib/io/meson.build': "# SPDX-License-Identifier: Apache-2.0\nmodules = ['b']\nuses = ['lib/base']\n"
                              "programs = {'prog': ['main.c']}\n",
    'src/lib/io/b.h': C + '/* b: what it is for */\n\n#pragma once\n',
    'src/lib/io/b.c': C + '#include "lib/io/b.h"\n\n#include "lib/base/a.h"\n',
    'src/lib/io/main.c': C + 'struct S {\n    GError *error;\n};\n',
}

FLAGS = C + '    {"v", FLAG_INT, FIELD(v), "2", %s, "log"},\n    {"port", FLAG_INT, FIELD(port), CERTS "1", %s, "a port"},\n'

# (what it is, files on top of CLEAN, the rules that are broken)
CASES = [
    ('clean', {}, []),
    ('no spdx', {'src/lib/base/a.c': '#include "lib/base/a.h"\n'}, ['spdx']),
    ('left to do', {'src/lib/base/a.c': C + '/* TO' 'DO: more */\n'}, ['todo']),
    ('left to do with issue', {'src/lib/base/a.c': C + '/* TO' 'DO(#7): more */\n'}, []),
    ('topic missing', {'src/lib/base/a.h': C + '#pragma once\n'}, ['topic']),
    ('topic misnamed', {'src/lib/base/a.h': C + '/* b: x */\n\n#pragma once\n'}, ['topic']),
    ('pragma missing', {'src/lib/base/a.h': C + '/* a: x */\n'}, ['pragma-once']),
    ('upward', {'src/lib/base/a.c': C + '#include "lib/base/a.h"\n#include "lib/io/b.h"\n'}, ['include']),
    ('include in a comment', {'src/lib/base/a.c': C + '/*\n#include "lib/io/b.h"\n*/\n'}, []),
    ('own header late', {'src/lib/io/b.c': C + '#include "lib/base/a.h"\n#include "lib/io/b.h"\n'}, ['own-header']),
    ('foreign internal', {'src/lib/io/c-internal.h': C + '/* c-internal: x */\n\n#pragma once\n',
                          'src/lib/io/main.c': C + '#include "lib/io/c-internal.h"\n'}, ['include']),
    ('flag that nobody reads', {'src/handler/config/flags.c': FLAGS % ('true', 'false')}, ['flag']),
    ('flag that is read', {'src/handler/config/flags.c': FLAGS % ('true', 'true'),
                           'src/handler/main.c': C + 'int x = flags->port + flags->v;\n'}, []),
    ('flag that is read although it is not built', {'src/handler/config/flags.c': FLAGS % ('true', 'false'),
                                                    'src/handler/main.c': C + 'int x = flags->port + flags->v;\n'}, ['flag']),
    ('banned', {'src/lib/base/a.c': C + 'int f(void)\n{\n    return atoi("1") + obj->fork(1);\n}\n'}, ['banned-call']),
    ('banned in its place', {'src/lib/linux/c.c': C + 'int f(void)\n{\n    return fork();\n}\n'}, []),
    ('a lock of GLib in a test', {'src/lib/base/test-a.c': C + 'void f(void)\n{\n    g_mutex_lock(&m);\n}\n'},
     ['banned-call']),
    ('waived', {'src/lib/base/a.c': C + 'int i = atoi("1"); /* lint: banned-call, why not */\n'}, []),
    ('waived without reason', {'src/lib/base/a.c': C + 'int i = atoi("1"); /* lint: banned-call, */\n'},
     ['banned-call']),
    ('strcmp', {'src/lib/base/a.c': C + 'int f(void)\n{\n    return strcmp(g(a, b), "x") == 0 || !strcmp(a, b);\n}\n'},
     ['strcmp', 'strcmp']),
    ('strcmp for order', {'src/lib/base/a.c': C + 'int f(void)\n{\n    return strcmp(a, b) < 0;\n}\n'}, []),
    ('unset error', {'src/lib/base/a.c': C + 'void f(void)\n{\n    g_autoptr(GError) error;\n    GError *e;\n}\n'},
     ['unset-error', 'unset-error']),
    ('unlisted', {'src/lib/base/c.c': C, 'src/lib/base/test-d.c': C}, ['unlisted', 'unlisted']),
    ('readme', {'src/lib/base/README.md': None}, ['readme']),
    ('direction', {'src/lib/io/meson.build': CLEAN['src/lib/io/meson.build'].replace("['lib/base']",
                                                                                    "['lib/base', 'handler/x']")},
     ['direction']),
    ('impure', {'src/handler/reconcile/meson.build': "# SPDX-License-Identifier: Apache-2.0\nmodules = ['decide']\n"
                                                     "uses = ['lib/base', 'lib/io']\n",
                'src/handler/reconcile/decide.c': C + '#include "lib/io/b.h"\nint f(void)\n{\n'
                                                      '    return ch_time_now_us();\n}\n'}, ['pure', 'pure']),
]


class LintTest(unittest.TestCase):
    def test_rules(self):
        for name, changes, expect in CASES:
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                files = {**CLEAN, **changes}
                readmes = {os.path.dirname(path) + '/README.md': '#\n' for path in files}
                for path, text in {**readmes, **files}.items():
                    if text is not None:
                        os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                        with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                            file.write(text)
                found = lint.Lint(root).run()
                self.assertEqual(sorted(rule for _, _, rule, _ in found), expect, found)


if __name__ == '__main__':
    unittest.main()
