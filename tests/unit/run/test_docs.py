# SPDX-License-Identifier: Apache-2.0
"""What the documents name is there: links, paths in backquotes, and the tour's functions."""
import glob
import os
import re
import shutil
import subprocess
import unittest

from support import script
from support.script import TOP

DOCUMENTS = [p for p in glob.glob('**/*.md', root_dir=TOP, recursive=True)
             if not p.startswith('build')]
# Documents about the source: each path in backquotes is there.
ABOUT_SOURCE = ['docs/CONTRIBUTING.md', 'docs/development/architecture.md', 'docs/development/tour.md', 'tests/README.md']
WITH_FUNCTIONS = ['docs/development/tour.md']


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as f:
        return f.read()


def quoted(path):
    text = re.sub(r'^    .*$|^```.*?^```', '', read(path), flags=re.M | re.S)     # not in examples
    return re.findall(r'`([^`\n]+)`', text)


def exists(path):
    return bool(glob.glob(os.path.join(TOP, path)))


def named(path):
    """Whether there is such a path, or the end of one: `room/file.h` is enough"""
    return exists(path) or any(not p.startswith('build')
                               for p in glob.glob('**/' + path, root_dir=TOP, recursive=True))


SENTENCE, BEGINNING = 40, 90     # words at most: of a sentence or its part up to a colon or semicolon, of a page's first paragraph


def prose(path):
    """Its paragraphs and list items as they are read: no commands, tables, headings, links' targets; code is a word"""
    text = re.sub(r'^```.*?^```$|<!--.*?-->', '', read(path), flags=re.M | re.S)
    for paragraph in re.split(r'\n\s*\n', text):
        if not re.match(r'    |\||#|!\[', paragraph):
            for item in re.split(r'^\s*(?:[*-]|\d+\.) ', paragraph, flags=re.M):
                item = '\n'.join(line for line in item.splitlines() if not line.startswith('|'))
                yield re.sub(r'`[^`]*`', 'code', re.sub(r'\]\([^)]*\)', ']', item))


def words(text):
    return len(re.findall(r"[A-Za-z][\w'-]*", text))


class TestDocuments(unittest.TestCase):
    maxDiff = None

    def test_links(self):
        wrong = []
        for document in DOCUMENTS:
            for target in re.findall(r'\]\(([^)#\s]+)(?:#[^)]*)?\)', read(document)):
                if not re.match(r'[a-z]+:', target) and \
                        not exists(os.path.join(os.path.dirname(document), target)):
                    wrong.append(f'{document}: {target}')
        self.assertEqual(wrong, [])

    def test_indexes(self):
        """Each page is in its folder's index, which names what it is for"""
        for kind in 'tutorials', 'how-to', 'reference', 'explanation', 'development':
            index = read(f'docs/{kind}/README.md')
            pages = set(os.listdir(os.path.join(TOP, 'docs', kind))) - {'README.md'}
            self.assertEqual(pages - set(re.findall(r'^\* \[[^]]+\]\(([\w-]+\.md)\): .', index, re.M)), set(), kind)
            self.assertIn(f'({kind}/README.md)', read('docs/README.md'))

    def test_first_and_last_lines(self):
        """A page begins with a sentence that says what it is for, and ends with what to read next"""
        for path in glob.glob('docs/*/*.md', root_dir=TOP):
            with self.subTest(path):
                title, blank, first = read(path).splitlines()[:3]
                self.assertRegex(title, '^# ')
                self.assertEqual(blank, '')
                self.assertRegex(first, '^[A-Z`]')
                self.assertRegex(read(path).rstrip().rsplit('\n\n', 1)[1], r'Next: \[')

    def test_sentences_are_short(self):
        long = [f'{path}: {words(sentence)} words: {" ".join(sentence.split())}'
                for path in ['README.md', *glob.glob('docs/**/*.md', root_dir=TOP, recursive=True)]
                for item in prose(path) for sentence in re.split(r'(?<=[.!?:;])\**\s+', item) if words(sentence) > SENTENCE]
        self.assertEqual(long, [])

    def test_beginnings_are_short(self):
        """What a page is for stands at its beginning, and in one paragraph"""
        self.assertEqual([path for path in glob.glob('docs/*/*.md', root_dir=TOP)
                          if words(next(text for text in prose(path) if text.strip())) > BEGINNING], [])

    def test_pictures(self):
        """Each that is drawn from a text is as its text says"""
        texts = [p for p in glob.glob('docs/**/*.txt', root_dir=TOP, recursive=True) if exists(p[:-3] + 'svg')]
        self.assertGreater(len(texts), 2)
        for path in texts:
            done = subprocess.run([os.path.join(TOP, 'scripts/picture'), '--check', path, path[:-3] + 'svg'], cwd=TOP,
                                  stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_paths(self):
        wrong = []
        for document in ABOUT_SOURCE:
            for word in quoted(document):
                if re.fullmatch(r'[\w.*-]+(/[\w.*-]+)*/?', word) and \
                        ('/' in word or re.search(r'\.(c|h|py|md)$', word)) and \
                        not word.startswith('build') and not named(word):
                    wrong.append(f'{document}: {word}')
        self.assertEqual(wrong, [])

    def test_top_level(self):
        """Small enough to take in at a look, and the tour says what each directory is for"""
        listed = subprocess.run(['git', 'ls-files', '--cached'], cwd=TOP, stdout=subprocess.PIPE, text=True, check=False) \
            if shutil.which('git') else None
        if not listed or listed.returncode:
            self.skipTest('no git here')
        entries = {path.split('/')[0] for path in listed.stdout.splitlines() if not path.startswith('.')}
        self.assertLessEqual(len(entries), 16, sorted(entries))
        self.assertEqual([e for e in entries if os.path.isdir(os.path.join(TOP, e))
                          and f'`{e}/' not in read('docs/development/tour.md')], [])

    def test_comments(self):
        """Files that comments of the source name: `room/file.h`, or one of several words, which nobody else means"""
        sources = [path for path in glob.glob('**/*.[ch]', root_dir=TOP, recursive=True) if not path.startswith('build')]
        ends = {path.split('/', n)[n] for path in sources for n in range(path.count('/') + 1)}
        wrong = []
        for path in sources:
            for comment in re.findall(r'/\*.*?\*/', read(path), re.S):
                wrong += [f'{path}: {name}' for name in re.findall(r'(?<![\w./<-])(\w[\w-]*[/-][\w/-]+\.[ch])\b', comment)
                          if not re.match('linux/|net/', name) and name not in ends]
        self.assertEqual(wrong, [])

    def test_what_fuzzers_are_for(self):
        reach = script.load('tests/fuzz/reach.py')
        self.assertEqual([p for patterns in reach.SOURCES.values() for p in patterns if not exists(p.lstrip('!'))], [])
        self.assertEqual([p for p, *_ in reach.WITHOUT_INPUT if p != '*' and not exists(p)], [])

    def test_functions(self):
        words = set()
        for path in glob.glob('**/*.[ch]', root_dir=TOP, recursive=True):
            if not path.startswith('build'):
                words.update(re.findall(r'\w+', read(path)))
        wrong = []
        for document in WITH_FUNCTIONS:
            for word in quoted(document):
                name = re.fullmatch(r'(?:struct )?([a-z]\w+)(?:\(\))?', word)
                if name and name[1] not in words:
                    wrong.append(f'{document}: {word}')
        self.assertEqual(wrong, [])


    def test_functions_of_files(self):
        """`function` (`file`), `function` in `file`"""
        wrong = []
        for document in WITH_FUNCTIONS:
            for name, path in re.findall(r'`([a-z]\w+)`\s(?:in\s|\()`([\w/.-]+\.[ch])`', read(document)):
                if exists(path) and not re.search(rf'\b{name}\b', read(path)):
                    wrong.append(f'{document}: {name} is not in {path}')
        self.assertEqual(wrong, [])

    def test_pytest_settings(self):
        """pytest 9 ends with an internal error where cache_dir has "..", so the documented commands would."""
        paths = glob.glob('tests/**/pytest.ini', root_dir=TOP, recursive=True)
        self.assertTrue(paths)
        wrong = [p for p in paths if re.search(r'^cache_dir\s*=.*\.\.', read(p), flags=re.M)]
        self.assertEqual(wrong, [])


if __name__ == '__main__':
    unittest.main()
