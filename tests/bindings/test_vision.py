#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tokenizers, images and their transforms in Python."""

import copy
import pathlib
import pickle
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gtorch as torch  # noqa: E402
import tap  # noqa: E402
from tap import raises  # noqa: E402
from gtorch import tokenizers, transforms, vision  # noqa: E402

IMAGE = torch.arange(0, 240, dtype=torch.uint8).reshape(3, 8, 10)


def values(tensor):
    return tensor.tolist()


def encode(image):
    """None where GdkPixbuf is not installed."""
    try:
        return vision.encode_png(image)
    except RuntimeError:
        return None


@tap.case
def tokenizers_are_trained_saved_and_read():
    made = tokenizers.Tokenizer.train_bpe(['low lower lowest'] * 3, 262, special_tokens=['<end>'])
    assert made.vocab_size == 262 and made.token_to_id('<end>') == 0 and made.token_to_id('none') is None
    ids = made.encode('lower<end>')
    assert ids[-1] == 0 and made.decode(ids, skip_special_tokens=False) == 'lower<end>'
    assert made.decode(torch.tensor(ids)) == 'lower'
    assert made.decode_bytes(made.encode('é')[:1]) == b'\xc3'
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert copied is not made and copied.encode('lower<end>') == made.encode('lower<end>')
    raises(TypeError, lambda: made.encode(5), 'encode(): text is a str, not int')
    raises(TypeError, lambda: tokenizers.Tokenizer.train_bpe('low', 262), 'train_bpe(): texts is a list of str')
    again = tokenizers.Tokenizer.from_str(made.to_str())
    assert again.encode('lower') == made.encode('lower')
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'tokenizer.json'
        made.save(path)
        assert tokenizers.Tokenizer.from_file(path).to_str() == made.to_str()


@tap.case
def batches_are_cut_and_filled_up():
    made = tokenizers.Tokenizer.train_bpe(['abc'], 256)
    tap.raises(ValueError, lambda: made.encode_batch(['a', 'bc']), 'padding is not enabled')
    made.enable_padding(pad_id=7, direction='left')
    made.enable_truncation(3)
    ids, mask, types = made.encode_batch(['abcd', 'c'], ['', 'a'])
    assert list(ids.shape) == [2, 3] and values(mask) == [[1, 1, 1], [0, 1, 1]]
    assert values(types) == [[0, 0, 0], [0, 0, 1]]
    assert values(ids)[1][0] == 7 and ids.dtype == torch.int64
    made.no_padding()
    made.no_truncation()
    assert len(made.encode('abcd')) == 4
    tap.raises(ValueError, lambda: made.enable_truncation(3, strategy='middle'), "'middle'")
    tap.raises(ValueError, lambda: made.encode_batch(['a'], ['b', 'c']), '1 texts, but 2 pairs')
    tap.raises(Exception, lambda: tokenizers.Tokenizer.from_str('{'), 'expected "')


@tap.case
def images_come_back():
    png = encode(IMAGE)
    if png is None:
        raise tap.Skip('GdkPixbuf is not installed')
    assert values(vision.decode_image(png)) == values(IMAGE)
    assert list(vision.decode_image(png, 'gray').shape) == [1, 8, 10]
    tap.raises(ValueError, lambda: vision.decode_image(png, max_pixels=5), '10 × 8 pixels')
    tap.raises(Exception, lambda: vision.decode_image(b'none'), 'image_load')
    tap.raises(ValueError, lambda: vision.decode_image(png, 'blue'), "'blue'")


@tap.case
def folders_are_classes():
    if encode(IMAGE) is None:
        raise tap.Skip('GdkPixbuf is not installed')
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        tap.raises(Exception, lambda: vision.ImageFolder(folder), 'has no folders')
        for name in ('b/2.png', 'b/1.png', 'a/inner/x.PNG'):
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            vision.write_png(IMAGE, path)
        (top / 'a' / 'note.txt').write_text('none')
        halved = vision.ImageFolder(folder, lambda image: image[:, ::2])
        assert halved[0][0].shape[1] == (vision.ImageFolder(folder)[0][0].shape[1] + 1) // 2
        raises(TypeError, lambda: vision.ImageFolder(folder, 3), 'ImageFolder(): a transform is a module or a function')
        data = vision.ImageFolder(folder, transforms.CenterCrop(4))
        assert data.classes == ['a', 'b'] and data.class_to_idx == {'a': 0, 'b': 1} and data.targets == [0, 1, 1]
        assert [pathlib.Path(path).name for path, _class in data.samples] == ['x.PNG', '1.png', '2.png']
        (top / 'c').mkdir()
        tap.raises(Exception, lambda: vision.ImageFolder(folder), 'the class “c” has no images')


@tap.case
def transforms_take_images_and_batches():
    batch = torch.stack([IMAGE, IMAGE])
    chain = transforms.Compose([
        transforms.Resize(6), transforms.CenterCrop((6, 4)), transforms.ConvertImageDtype(torch.float32),
        transforms.Normalize((0.5, 0.25, 0.0), (0.5, 0.5, 1.0)),
    ])
    one, two = chain(IMAGE), chain(batch)
    assert list(one.shape) == [3, 6, 4] and list(two.shape) == [2, 3, 6, 4] and values(two[1]) == values(one)
    assert values(transforms.RandomHorizontalFlip(1.0)(IMAGE)) == values(IMAGE.flip(-1))
    assert values(transforms.RandomVerticalFlip(0.0)(IMAGE)) == values(IMAGE)
    assert not hasattr(torch.nn, 'Resize') and not hasattr(transforms, 'Linear')
    for random in (transforms.RandomCrop(5), transforms.RandomResizedCrop(5),
                   transforms.ColorJitter(0.5, 0.5, 0.5, 0.2), transforms.RandomErasing(1.0, value=9.0)):
        torch.manual_seed(3)
        first = random(IMAGE)
        torch.manual_seed(3)
        assert values(random(IMAGE)) == values(first) and first.dtype == torch.uint8
        assert any(values(random(IMAGE)) != values(first) for _ in range(5))


@tap.case
def transforms_refuse_what_they_cannot_do():
    floats = IMAGE.to(torch.float32)
    tap.raises(Exception, lambda: transforms.Normalize(0.5, 0.5)(IMAGE), 'floating-point numbers, not of uint8')
    tap.raises(Exception, lambda: transforms.Normalize((0.5, 0.1), 0.5)(floats), '2 numbers for the channels')
    tap.raises(Exception, lambda: transforms.RandomCrop(20)(IMAGE), '20 × 20 is larger than the image')
    tap.raises(Exception, lambda: transforms.Grayscale(2)(IMAGE), '1 or 3')
    tap.raises(Exception, lambda: transforms.Resize(4, interpolation='area')(floats), 'nearest, nearest-exact')
    tap.raises(Exception, lambda: transforms.Resize(4, max_size=4)(floats), 'must be greater')
    tap.raises(Exception, lambda: transforms.ConvertImageDtype(torch.int32)(IMAGE), 'not of int32')


@tap.case
def functions_are_transforms():
    both = transforms.Compose([lambda image: image.float(), transforms.Lambda(lambda image: image / 2)])
    assert torch.equal(both(IMAGE), IMAGE.float() / 2) and str(both[1]).startswith('Lambda('), both
    raises(TypeError, lambda: transforms.Compose([3]), 'Compose(): a transform is a module or a function, not int')
    raises(TypeError, lambda: transforms.Lambda(3), 'cannot be called')
    raises(ZeroDivisionError, lambda: transforms.Compose([lambda image: 1 / 0])(IMAGE))
    raises(TypeError, lambda: transforms.Compose([lambda image: 1])(IMAGE))


@tap.case
def exceptions_of_transforms_keep_their_kind_in_workers():
    def fail(image):
        raise KeyError('no such image')

    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / 'a').mkdir()
        vision.write_png(torch.zeros(3, 4, 4, dtype=torch.uint8), f'{folder}/a/1.png')
        for transform in (fail, transforms.Compose([transforms.CenterCrop(2), fail])):
            for n in (0, 1):
                loader = torch.utils.data.DataLoader(vision.ImageFolder(folder, transform), num_workers=n)
                raises(KeyError, lambda: list(loader), 'no such image')


tap.main()
