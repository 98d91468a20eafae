# SPDX-License-Identifier: Apache-2.0
"""The documents as a site (scripts/site): every page and link is there, and nothing comes from elsewhere."""
import html
import os
import re
import subprocess

import pytest

from support.packages import from_pypi
from support.topo import REPOSITORY, build_directory


@pytest.fixture(scope='module', name='site')
def the_site(tmp_path_factory):
    try:
        packages = from_pypi(build_directory(), 'mkdocs', '-r', os.path.join(REPOSITORY, 'packaging/site/requirements.txt'))
    except OSError as e:
        pytest.skip(str(e))
    out = tmp_path_factory.mktemp('site')
    done = subprocess.run([os.path.join(REPOSITORY, 'scripts/site'), out], env={**os.environ, 'PYTHONPATH': packages},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return {path.relative_to(out): path.read_text(encoding='utf-8') for path in out.rglob('*.html')}, out


def targets(text):
    return [(tag, html.unescape(to)) for tag, to in re.findall(r'<(\w+)[^>]*?\b(?:src|href)="([^"]*)"', text)]


def test_each_page_is_there(site):
    pages = {str(path) for path in site[0]}
    documents = [os.path.relpath(os.path.join(top, name), os.path.join(REPOSITORY, 'docs'))
                 for top, _, names in os.walk(os.path.join(REPOSITORY, 'docs')) for name in names if name.endswith('.md')]
    assert len(documents) > 40
    wanted = {os.path.join(os.path.dirname(d), 'index.html') if d.endswith('README.md') else d[:-2] + 'html' for d in documents}
    assert wanted <= pages
    front = site[0][next(path for path in site[0] if str(path) == 'index.html')]
    assert 'Two minutes' in front and 'how-to/real-links.html' in front       # the project's README


def test_nothing_comes_from_elsewhere(site):
    for path, text in site[0].items():
        assert not [to for tag, to in targets(text) if tag != 'a' and re.match(r'(https?:)?//', to)], path


def test_links(site):
    pages, out = site
    wrong = []
    for path, text in pages.items():
        for _, to in targets(text):
            if str(path) == '404.html' or re.match(r'([a-z]+:|//|#|$)', to):
                continue
            file = os.path.normpath(os.path.join(out, os.path.dirname(path), re.split('[?#]', to)[0]))
            if not os.path.exists(file):
                wrong.append(f'{path}: {to}')
    assert wrong == []
