# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tokenizers with the names of the package `tokenizers`: GTorch.Tokenizer, and GTorch.tokenizers."""

import operator

from gi.overrides import override
from gi.repository import GLib

from gi.overrides._gtorch_convert import GTorch

OVERRIDES = 'gi.overrides.GTorch'
STRATEGIES = {'longest_first': 'LONGEST_FIRST', 'only_first': 'ONLY_FIRST', 'only_second': 'ONLY_SECOND'}
SIDES = {'right': False, 'left': True}


def _one_of(name, value, table):
    if value not in table:
        raise ValueError(f'{name} is {value!r}, but must be one of {", ".join(map(repr, table))}')
    return table[value]


def _numbers(ids):
    if isinstance(ids, (str, bytes)):
        raise TypeError(f'the numbers of tokens are a list or a tensor, not {type(ids).__name__}')
    return [_whole(f'ids[{i}]', one) for i, one in enumerate(ids.tolist() if hasattr(ids, 'tolist') else ids)]


def _text(name, value):
    """A text, which C has up to its first NUL."""
    if not isinstance(value, str):
        raise TypeError(f'{name} is a str, not {type(value).__name__}')
    if '\0' in value:
        raise ValueError(f'{name} has a NUL at {value.index(chr(0))}, with which texts end here')
    return value


def _texts(name, values):
    if isinstance(values, (str, bytes)):
        raise TypeError(f'{name} is a list of str, not one {type(values).__name__}')
    return [_text(f'{name}[{i}]', value) for i, value in enumerate(values)]


def _whole(name, value):
    if isinstance(value, bool) or not hasattr(value, '__index__'):
        raise TypeError(f'{name} is a whole number, not {type(value).__name__}')
    return operator.index(value)


def make(_name, raw):
    """Creates the class from that of C."""

    class Tokenizer(raw):
        """Turns texts into the numbers of tokens, and back: Tokenizer.from_file('tokenizer.json')."""

        __module__, __qualname__ = OVERRIDES, 'Tokenizer'

        @staticmethod
        def from_file(path):
            """Reads a file tokenizer.json."""
            return raw.load_file(path, None)

        @staticmethod
        def from_buffer(buffer):
            """Reads the content of a file, as bytes."""
            return raw.load_bytes(GLib.Bytes.new(bytes(buffer)))

        @staticmethod
        def from_str(json):
            """Reads the text of a file."""
            return Tokenizer.from_buffer(json.encode())

        @staticmethod
        def train_bpe(texts, vocab_size, min_frequency=2, special_tokens=(), add_prefix_space=False, cancellable=None):
            """Makes a byte-level BPE from texts, as GPT-2 has it."""
            return raw.train_bpe(_texts('train_bpe(): texts', texts), _whole('train_bpe(): vocab_size', vocab_size),
                                 _whole('train_bpe(): min_frequency', min_frequency),
                                 _texts('train_bpe(): special_tokens', special_tokens),
                                 add_prefix_space, cancellable)

        def to_str(self):
            """The text of a file."""
            return self.to_bytes().get_data().decode()

        def save(self, path, cancellable=None):
            """Writes a file: a path, or a Gio.File."""
            return super().save(path, cancellable)

        def encode(self, text, pair=None, add_special_tokens=True):
            """The numbers of a text's tokens, as a list."""
            pair = None if pair is None else _text('encode(): pair', pair)
            return list(super().encode(_text('encode(): text', text), pair, add_special_tokens))

        def encode_batch(self, texts, pairs=None, add_special_tokens=True):
            """The tensors ids, attention_mask and type_ids of several texts."""
            pairs = None if pairs is None else _texts('encode_batch(): pairs', pairs)
            return super().encode_batch(_texts('encode_batch(): texts', texts), pairs, add_special_tokens)

        def decode(self, ids, skip_special_tokens=True):
            """The text of numbers: a list, or a tensor."""
            return super().decode(_numbers(ids), skip_special_tokens)

        def decode_bytes(self, ids, skip_special_tokens=True):
            """The bytes of numbers, which may end within a character."""
            return super().decode_bytes(_numbers(ids), skip_special_tokens).get_data() or b''

        def token_to_id(self, token):
            """The number of a token, or None."""
            found = super().token_to_id(token)
            return found if found >= 0 else None

        def enable_padding(self, length=None, pad_to_multiple_of=None, direction='right', pad_id=0, pad_type_id=0,
                           pad_token='[PAD]'):
            """Lets sequences be filled up to a length, by default that of the longest."""
            return super().enable_padding(length or 0, pad_to_multiple_of or 0, _one_of('direction', direction, SIDES),
                                          pad_id, pad_type_id, pad_token)

        def enable_truncation(self, max_length, strategy='longest_first', direction='right'):
            """Lets sequences be cut."""
            strategy = getattr(GTorch.Truncation, _one_of('strategy', strategy, STRATEGIES))
            return super().enable_truncation(max_length, strategy, _one_of('direction', direction, SIDES))

        def __reduce_ex__(self, _protocol):
            from gi.overrides import _gtorch_unpickle as unpickle

            return unpickle.tokenizer, (self.to_bytes().get_data(),)

        def __deepcopy__(self, _memo=None):
            return Tokenizer.from_buffer(self.to_bytes().get_data())

        __copy__ = __deepcopy__

        def no_padding(self):
            """Lets sequences be as long as they are."""
            self.disable_padding()

        def no_truncation(self):
            """Lets sequences be as long as they are."""
            self.disable_truncation()

    return override(Tokenizer)
