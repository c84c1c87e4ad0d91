#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""oci-layout.py DIR TAG NAME=FILE...: writes an OCI image layout with one layer, which holds the files."""

import hashlib
import io
import json
import os
import sys
import tarfile

MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
CONFIG = 'application/vnd.oci.image.config.v1+json'
LAYER = 'application/vnd.oci.image.layer.v1.tar'


def add_blob(layout, data, media_type):
    digest = hashlib.sha256(data).hexdigest()
    with open(os.path.join(layout, 'blobs/sha256', digest), 'wb') as blob:
        blob.write(data)
    return {'mediaType': media_type, 'digest': 'sha256:' + digest, 'size': len(data)}


def make_layer(files):
    """The same files give the same bytes, so that the layer keeps its digest."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode='w', format=tarfile.PAX_FORMAT) as tar:
        for folder in sorted({os.path.dirname(name) for name in files} - {''}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, path in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = os.path.getsize(path), 0o644
            with open(path, 'rb') as file:
                tar.addfile(entry, file)
    return buffer.getvalue()


def main():
    layout, tag = sys.argv[1:3]
    files = dict(argument.split('=', 1) for argument in sys.argv[3:])
    os.makedirs(os.path.join(layout, 'blobs/sha256'))
    layer = make_layer(files)
    config = {'architecture': 'amd64', 'os': 'linux', 'config': {},
              'rootfs': {'type': 'layers', 'diff_ids': ['sha256:' + hashlib.sha256(layer).hexdigest()]}}
    manifest = {'schemaVersion': 2, 'mediaType': MANIFEST,
                'config': add_blob(layout, json.dumps(config).encode(), CONFIG),
                'layers': [add_blob(layout, layer, LAYER)]}
    entry = add_blob(layout, json.dumps(manifest).encode(), MANIFEST)
    entry['annotations'] = {'org.opencontainers.image.ref.name': tag}
    for name, content in (('index.json', {'schemaVersion': 2, 'manifests': [entry]}),
                          ('oci-layout', {'imageLayoutVersion': '1.0.0'})):
        with open(os.path.join(layout, name), 'w', encoding='utf-8') as file:
            json.dump(content, file)


main()
