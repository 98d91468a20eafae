# SPDX-License-Identifier: Apache-2.0
"""scripts/coverage knows the lines that no test is expected to reach: by their shape, and by marks with a reason."""
import unittest

from support import script

coverage = script.load('scripts/coverage')

SOURCE = '''static int
thing_new(struct thing **out, int n)
{
    struct thing *new = calloc(1, sizeof *new);
    if (!new)
        return NULL;
    int err = thing_connect(new);
    if (err) {
        free(new);
        return err;
    }
    if (n > MOST &&
        !is_free(new))
        return -EINVAL;
    struct list *found = list_find(new, n);
    if (!found)
        return false;
    if (nla_put_u32(msg, ONE, 1) ||
        nla_put_u32(msg, TWO, 2))
        return -1;
    if (found->wrong) {
        free(found);
        return -ENOMEM;
    }
    return 0;
}
'''.splitlines()


class TestCoverage(unittest.TestCase):
    def shape(self, line, function='thing_new'):
        number, = [i for i, text in enumerate(SOURCE, 1) if text.strip() == line]
        return coverage.shape(SOURCE, number, function)

    def test_shapes(self):
        self.assertEqual(self.shape('return NULL;'), coverage.NO_MEMORY)
        self.assertEqual(self.shape('free(found);'), coverage.NO_MEMORY)
        self.assertIn('the start', self.shape('free(new);'))
        self.assertIn('the start', self.shape('return err;'))
        self.assertIn('message is full', self.shape('return -1;'))

    def test_what_has_no_such_shape(self):
        for line in 'return -EINVAL;', 'return false;', 'return 0;', 'int err = thing_connect(new);':
            self.assertIsNone(self.shape(line), line)
        self.assertIsNone(self.shape('free(new);', 'thing_change'))

    def test_marks(self):
        found, wrong = coverage.marks('x.c', [
            'one(); /* LCOV_EXCL_LINE: luck */', 'two();', 'if (a) { /* LCOV_EXCL_START: no row leads there */', 'three();',
            '} /* LCOV_EXCL_STOP */', 'four(); /* LCOV_EXCL_LINE */'])
        self.assertEqual(found, {1: 'luck', 3: 'no row leads there', 4: 'no row leads there', 6: None})
        self.assertEqual(len(wrong), 1)
        self.assertIn('x.c:6: LCOV_EXCL_LINE without a reason', wrong[0])


if __name__ == '__main__':
    unittest.main()
