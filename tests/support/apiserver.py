# SPDX-License-Identifier: Apache-2.0
"""As much of Kubernetes' API as ofqos-operator uses: list in pages, watch with bookmarks, server-side apply of a status; and what a
test wants of it: objects that change, watches that end, versions that are too old, and no answer at all."""
import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

POLICIES, PODS = '/apis/ofqos.io/v1alpha1/bandwidthpolicies', '/api/v1/pods'
PAGE = 2                        # objects of an answer, however many are asked for


class ApiServer:
    """url; put(), delete() objects; token: what everybody has to show"""

    def __init__(self, token=''):
        self.token, self.version, self.broken = token, 100, 0
        self.objects = {POLICIES: {}, PODS: {}}
        self.managers, self.watches, self.asked = {}, [], []
        self.lock = threading.RLock()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def log_message(self, *_):
                pass

            def do_GET(self):
                api.get(self)

            def do_PATCH(self):
                api.patch(self)
        self.http = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.http.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.http.server_port}'
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end_watches()
        self.http.shutdown()
        self.http.server_close()

    # ---- for a test

    def put(self, path, namespace, name, **said):
        with self.lock:
            self.version += 1
            old = self.objects[path].get((namespace, name))
            meta = {'namespace': namespace, 'name': name, 'resourceVersion': str(self.version), 'generation': self.version, **said.pop('metadata', {})}
            made = {'metadata': meta, **({'status': old['status']} if old and 'status' in old else {}), **said}
            self.objects[path][namespace, name] = made
            self._tell(path, 'MODIFIED' if old else 'ADDED', made)

    def policy(self, name, namespace='default', **spec):
        self.put(POLICIES, namespace, name, spec=spec)

    def pod(self, name, namespace='default', node='n1', labels=None, annotations=None):
        self.put(PODS, namespace, name, metadata={'labels': labels or {}, 'annotations': annotations or {}}, spec={'nodeName': node})

    def delete(self, path, name, namespace='default'):
        with self.lock:
            self.version += 1
            gone = self.objects[path].pop((namespace, name))
            gone['metadata']['resourceVersion'] = str(self.version)
            self._tell(path, 'DELETED', gone)

    def rows(self, name, namespace='default'):
        with self.lock:
            return self.objects[POLICIES][namespace, name].get('status', {}).get('nodes', [])

    def end_watches(self, event=None):
        """All of them, with a last event"""
        with self.lock:
            for _, sending in self.watches:
                if event:
                    sending.put(event)
                sending.put(None)
            self.watches = []

    # ---- requests

    def _tell(self, path, kind, made):
        for watched, sending in self.watches:
            if watched == path:
                sending.put({'type': kind, 'object': made})

    def _fail(self, request, status, message):
        self._answer(request, {'kind': 'Status', 'message': message, 'code': status}, status)

    @staticmethod
    def _answer(request, said, status=200):
        data = json.dumps(said).encode()
        request.send_response(status)
        request.send_header('Content-Type', 'application/json')
        request.send_header('Content-Length', str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def _allowed(self, request):
        self.asked.append(f'{request.command} {request.path}')
        if self.broken:
            self._fail(request, self.broken, 'broken')
        elif self.token and request.headers.get('Authorization') != f'Bearer {self.token}':
            self._fail(request, 401, 'Unauthorized')
        else:
            return True
        return False

    def get(self, request):
        url = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if not self._allowed(request):
            return
        if url.path not in self.objects:
            self._fail(request, 404, 'the server could not find the requested resource')
        elif query.get('watch'):
            self._watch(request, url.path, int(query['resourceVersion']))
        else:
            self._list(request, url.path, query)

    def _list(self, request, path, query):
        node = query.get('fieldSelector', '').rpartition('=')[2]
        with self.lock:
            found = [o for _, o in sorted(self.objects[path].items()) if not node or o['spec'].get('nodeName') == node]
            at = int(query.get('continue', 0))
            more = {'continue': str(at + PAGE)} if at + PAGE < len(found) else {}
            self._answer(request, {'items': found[at:at + PAGE], 'metadata': {'resourceVersion': str(self.version), **more}})

    def _watch(self, request, path, version):
        sending = queue.Queue()
        with self.lock:
            for _, made in sorted(self.objects[path].items()):
                if int(made['metadata']['resourceVersion']) > version:
                    sending.put({'type': 'MODIFIED', 'object': made})
            sending.put({'type': 'BOOKMARK', 'object': {'metadata': {'resourceVersion': str(self.version)}}})
            self.watches.append((path, sending))
        request.send_response(200)
        request.send_header('Transfer-Encoding', 'chunked')
        request.end_headers()
        try:
            for event in iter(sending.get, None):
                data = json.dumps(event).encode() + b'\n'
                for piece in data[:7], data[7:]:         # an event is not a piece
                    request.wfile.write(f'{len(piece):x}\r\n'.encode() + piece + b'\r\n')
                    request.wfile.flush()
            request.wfile.write(b'0\r\n\r\n')
        except OSError:
            pass

    def patch(self, request):
        """Server-side apply: each manager has its rows, by node"""
        url = urlsplit(request.path)
        manager, = parse_qs(url.query)['fieldManager']
        said = json.loads(request.rfile.read(int(request.headers['Content-Length'])))
        if not self._allowed(request):
            return
        assert request.headers['Content-Type'] == 'application/apply-patch+yaml'
        namespace, _, name, _ = url.path.split('/')[5:]
        with self.lock:
            made = self.objects[POLICIES].get((namespace, name))
            if made is None:
                self._fail(request, 404, f'bandwidthpolicies "{name}" not found')
                return
            own = self.managers.setdefault((namespace, name), {})
            own[manager] = said['status']['nodes']
            self.version += 1
            made['status'] = {'nodes': sorted((row for rows in own.values() for row in rows), key=lambda row: row['node'])}
            made['metadata']['resourceVersion'] = str(self.version)
            self._tell(POLICIES, 'MODIFIED', made)
            self._answer(request, made)
