# SPDX-License-Identifier: Apache-2.0
"""What differs between the documents in the source and as a site: pages outside docs/ are named, not linked, the menu
follows the indexes, and the project's README is the front page."""
import os
import posixpath
import re

KINDS = (('Tutorials', 'tutorials'), ('How-to', 'how-to'), ('Reference', 'reference'), ('Explanation', 'explanation'),
         ('Development', 'development'))
LINK = re.compile(r'\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)')
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _pages(kind):
    """The pages of an index, in its order"""
    with open(os.path.join(TOP, 'docs', kind, 'README.md'), encoding='utf-8') as f:
        return [f'{kind}/README.md'] + [f'{kind}/{name}' for name in re.findall(r'^\* \[[^\]]+\]\(([\w-]+\.md)\)', f.read(), re.M)]


def on_config(config):
    config.nav = [{'ofqos': 'README.md'}] + [{title: _pages(kind)} for title, kind in KINDS] + [{'Changes': 'CHANGELOG.md'}]
    return config


def on_page_markdown(markdown, page, files, **_):
    folder = posixpath.dirname(page.file.src_uri)
    if page.file.src_uri == 'README.md':
        with open(os.path.join(TOP, 'README.md'), encoding='utf-8') as f:
            markdown = re.sub(r'\]\(docs/', '](', f.read())

    def link(m):
        target = posixpath.normpath(posixpath.join(folder, m[2]))
        file = files.get_file_from_path(target)
        if file and not file.inclusion.is_excluded():
            return m[0]
        return f'{m[1]} (`{target.removeprefix("../")}`)'
    return LINK.sub(link, markdown)


def on_post_build(config):
    """The page of results is HTML already: only its links to pages change"""
    path = os.path.join(config.site_dir, 'results', 'index.html')
    with open(path, encoding='utf-8') as f:
        text = f.read()
    with open(path, 'w', encoding='utf-8') as f:
        f.write(re.sub(r'(href="\.\./[\w/-]+\.)md"', r'\1html"', text))
