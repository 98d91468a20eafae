#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/sbom: valid SPDX 2.3, and it names what the programs are linked with

usage: test_sbom.py BUILD
"""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
BUILD = sys.argv.pop(1)


def dependencies():
    """{name: version} of what meson found"""
    said = subprocess.run(['meson', 'introspect', '--dependencies', BUILD], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    return {d['name']: d['version'] for d in json.loads(said)}


def bill():
    said = subprocess.run([os.path.join(TOP, 'scripts/sbom'), '--build', BUILD], check=True,
                          stdout=subprocess.PIPE, text=True, env=dict(os.environ, SOURCE_DATE_EPOCH='1700000000'))
    return said.stdout


@unittest.skipUnless(shutil.which('readelf'), 'there is no readelf (package binutils)')
class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = bill()
        cls.bill = json.loads(cls.text)
        cls.packages = {p['name']: p for p in cls.bill['packages']}

    def test_has_what_spdx_requires(self):
        for key in 'SPDXID', 'creationInfo', 'dataLicense', 'documentNamespace', 'name', 'spdxVersion':
            self.assertTrue(self.bill[key], key)
        self.assertEqual(self.bill['spdxVersion'], 'SPDX-2.3')
        self.assertEqual(self.bill['dataLicense'], 'CC0-1.0')
        self.assertEqual(self.bill['creationInfo']['created'], '2023-11-14T22:13:20Z')
        for package in self.bill['packages']:
            self.assertTrue({'SPDXID', 'name', 'downloadLocation'} <= set(package), package)
        for file in self.bill['files']:
            self.assertTrue(file['fileName'].startswith('./'))
            lengths = {c['algorithm']: len(c['checksumValue']) for c in file['checksums']}
            self.assertEqual(lengths, {'SHA1': 40, 'SHA256': 64})

    def test_elements_are_there_once(self):
        ids = [e['SPDXID'] for e in (self.bill, *self.bill['packages'], *self.bill['files'])]
        self.assertEqual(len(ids), len(set(ids)))
        for name in ids:
            self.assertTrue(re.fullmatch(r'SPDXRef-[A-Za-z0-9.-]+', name), name)
        for relation in self.bill['relationships']:
            self.assertIn(relation['spdxElementId'], ids)
            self.assertIn(relation['relatedSpdxElement'], ids)

    def test_names_the_libraries_as_built(self):
        found = dependencies()
        self.assertIn('libnl-route-3.0', self.packages)
        for name in 'libnl-route-3.0', 'libpcap', 'liburcu-qsbr', 'openssl', 'libseccomp', 'libbpf', 'inih', 'jansson':
            self.assertEqual(name in self.packages, name in found, name)
            if name in found:
                self.assertEqual(self.packages[name]['versionInfo'], found[name])
        self.assertNotIn('cmocka', self.packages)

    def test_every_library_of_a_program_is_told(self):
        for file in self.bill['files']:
            said = subprocess.run(['readelf', '--dynamic', '--wide', os.path.join(BUILD, file['fileName'])],
                                  check=True, stdout=subprocess.PIPE, text=True).stdout
            if '(NEEDED)' in said:
                linked = [r for r in self.bill['relationships'] if r['spdxElementId'] == file['SPDXID']]
                self.assertTrue(linked, file['fileName'])
                self.assertIn('SPDXRef-library-libc', [r['relatedSpdxElement'] for r in linked])

    @unittest.skipUnless(shutil.which('dpkg-query'), 'this is not Debian')
    def test_every_shared_library_has_its_version(self):
        shared = {r['relatedSpdxElement'] for r in self.bill['relationships']
                  if r['relationshipType'] == 'DYNAMIC_LINK'}
        for package in self.packages.values():
            if package['SPDXID'] in shared:
                self.assertNotEqual(package['versionInfo'], 'NOASSERTION', package['name'])

    def test_is_the_same_again(self):
        self.assertEqual(bill(), self.text)


if __name__ == '__main__':
    unittest.main()
