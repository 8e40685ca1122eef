// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Serves Perfetto's trace processor on a socket of the system, to one client, and ends with it.
//
//     node bridge.js FOLDER SOCKET
//
// FOLDER has engine_bundle.js and trace_processor.wasm, the parts of Perfetto's web page that read
// traces. The page runs them in a worker: it sends the worker one message with a port, and from then
// on both send bytes by that port, the protocol of `trace_processor server unix`. Here the worker's
// surroundings are made of what node has, and the port is the socket. "ready" is printed once a client
// can connect.

'use strict';

const fs = require('fs');
const net = require('net');
const path = require('path');
const vm = require('vm');

const [folder, address] = process.argv.slice(2);
const node = process;
let client = null;

// The bundle fetches the program by its name, in a synchronous request.
class Request {
  open(method, url) {
    this.file = path.join(folder, path.basename(url));
  }

  send() {
    const bytes = fs.readFileSync(this.file);
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.status = 200;
  }
}

Object.assign(globalThis, {
  self: globalThis,
  WorkerGlobalScope: Object,
  XMLHttpRequest: Request,
  importScripts() {},
  location: {href: 'http://localhost/engine_bundle.js'},
});

// What Emscripten has made asks whether it is in node by this variable, and would look for files then.
globalThis.process = undefined;
vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'));
globalThis.process = node;

const port = {
  postMessage(bytes) {
    client.write(Buffer.from(bytes)); // a copy: the bytes are those of the program's memory
  },
};
globalThis.onmessage({data: port});

const server = net.createServer(socket => {
  client = socket;
  socket.on('data', bytes => port.onmessage({data: new Uint8Array(bytes)}));
  socket.on('error', error => console.error(`bridge: ${error.message}`));
  socket.on('close', () => node.exit(0));
});
server.listen(address, () => console.log('ready'));
