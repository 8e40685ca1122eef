#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes small tokenizers, and what the package `tokenizers` makes of texts with them, into data/.

Run by hand, with a Python that has the package; COUNT and SEED give more and other texts:

    reference.py [FOLDER [COUNT [SEED]]]
"""

import json
import pathlib
import random
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = [
    'The licenses for most software are designed to take away your freedom to share and change it.',
    'By contrast, the GNU General Public License is intended to guarantee your freedom to share free software.',
    "It's the user's right; they're free, we've said, and don't I'll they'd I'm 2024 1234567 ...",
    'Ünïcödé: naïve café, Straße, 中文字符 日本語 한국어, emoji 🥰👩‍👩‍👧, ½ Ⅷ ﬁ ﷺ İstanbul Σίσυφος',
    'tabs\tand\nnewlines\r\n  and   blanks\u00a0no-break\u3000wide\u2028line',
    'def f(x):\n    return x ** 2 + 3 * (x - 1) / 4  # comment\n\n\n',
]
PIECES = ['<|end|>', '<mask>', '<mask>s', 'Hello', '[CLS]', "'s", "'LL", 'é', 'e\u0301', '中', '🥰', '\u200d',
          '\ufffd', '\x07', '\t', '\n', '  ', '\u00a0', '\u0085', '½', 'ß', 'Σς', '~', '$', '``',
          'x' * 120, '\u1680', 'ǅ', 'Ⓐ', 'İ']
ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def changed(tokenizer, **sections):
    return Tokenizer.from_str(json.dumps({**json.loads(tokenizer.to_str()), **sections}))


def byte_level():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(TEXTS, trainers.BpeTrainer(
        vocab_size=420, special_tokens=['<|end|>'], initial_alphabet=ALPHABET, show_progress=False))
    return made


def wordpiece():
    made = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(TEXTS, trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]'], show_progress=False))
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1', special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    return made


def suffixes():
    made = Tokenizer(models.BPE(unk_token='<unk>', end_of_word_suffix='</w>', fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.decoder = decoders.BPEDecoder(suffix='</w>')
    made.train_from_iterator(TEXTS[:2], trainers.BpeTrainer(
        vocab_size=80, special_tokens=['<unk>'], end_of_word_suffix='</w>', show_progress=False))
    return made


def tokenizers():
    plain = byte_level()
    split = {'type': 'Sequence', 'pretokenizers': [
        {'type': 'Split', 'pattern': {'Regex': r'\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)'},
         'behavior': 'MergedWithNext', 'invert': False},
        {'type': 'Digits', 'individual_digits': True},
        {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True}]}
    added = [{'id': 0, 'content': '<|end|>', 'single_word': False, 'lstrip': False, 'rstrip': False,
              'normalized': False, 'special': True},
             {'id': 420, 'content': '<mask>', 'single_word': False, 'lstrip': True, 'rstrip': False, 'normalized': True,
              'special': False},
             {'id': 421, 'content': 'Hello', 'single_word': True, 'lstrip': False, 'rstrip': True, 'normalized': True,
              'special': True}]
    return {
        'gpt': plain,
        'roberta': changed(plain, pre_tokenizer={'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': True,
                                                 'use_regex': True},
                           post_processor={'type': 'RobertaProcessing', 'sep': ['</s>', 5], 'cls': ['<s>', 6],
                                           'trim_offsets': True, 'add_prefix_space': True}),
        'split': changed(plain, pre_tokenizer=split, normalizer={'type': 'NFC'}, added_tokens=added),
        'bert': wordpiece(),
        'suffix': suffixes(),
    }


def text(draw):
    parts = []
    for _ in range(draw.randint(0, 8)):
        source = draw.choice(TEXTS)
        begin = draw.randrange(len(source))
        parts.append(draw.choice([draw.choice(PIECES), source[begin:begin + draw.randint(1, 30)], ' ']))
    return ''.join(parts)


def case(tokenizer, draw):
    first, second = text(draw), text(draw) if draw.random() < 0.3 else None
    special = draw.random() < 0.7
    made = tokenizer.encode(first, second, add_special_tokens=special)
    return {'text': first, 'pair': second, 'special': special, 'ids': made.ids, 'types': made.type_ids,
            'decoded': tokenizer.decode(made.ids)}


def cut(tokenizer, draw):
    rule = {'length': draw.randint(6, 16), 'strategy': draw.choice(['longest_first', 'only_first', 'only_second']),
            'left': draw.random() < 0.5, 'pad_left': draw.random() < 0.5, 'multiple': draw.choice([0, 4])}
    tokenizer.enable_truncation(rule['length'], strategy=rule['strategy'],
                                direction='left' if rule['left'] else 'right')
    tokenizer.enable_padding(direction='left' if rule['pad_left'] else 'right', pad_id=1, pad_type_id=3,
                             pad_to_multiple_of=rule['multiple'] or None)
    pairs = [(text(draw), text(draw)) for _ in range(2)]
    try:
        made = tokenizer.encode_batch(pairs)
        result = {'ids': [one.ids for one in made], 'types': [one.type_ids for one in made],
                  'mask': [one.attention_mask for one in made]}
    except BaseException:  # of Rust
        result = None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return {**rule, 'texts': [a for a, _ in pairs], 'pairs': [b for _, b in pairs], 'result': result}


def main(folder=HERE / 'data', count=24, seed=1):
    draw = random.Random(int(seed))
    for name, tokenizer in tokenizers().items():
        found = {'tokenizer': json.loads(tokenizer.to_str()),
                 'cases': [case(tokenizer, draw) for _ in range(int(count))],
                 'cuts': [cut(tokenizer, draw) for _ in range(int(count) // 4)]}
        path = pathlib.Path(folder) / f'{name}.json'
        path.write_text(json.dumps(found, ensure_ascii=True) + '\n', 'utf-8')


if __name__ == '__main__':
    main(*sys.argv[1:])
