# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""How many JPEG images of a folder a loader decodes, resizes, crops and normalizes, beside PyTorch's.

bench/data/images.py FOLDER --ours PYTHON --peer PYTHON

FOLDER has one folder for each class, as torchvision's ImageFolder wants it. PyTorch decodes once with Pillow,
torchvision's default, and once with torchvision.io. Both sides have one thread for each worker. A row tells images
per second, of the best of three epochs, and the processor's time for an image.
"""

import argparse
import json
import resource
import shlex
import subprocess
import time

MEAN, DEVIATION = (.485, .456, .406), (.229, .224, .225)


def measure(make, workers):
    best, cpu = 0, 1e9
    for _ in range(3):
        former = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        start, n = time.perf_counter(), 0
        for images, _ in make():
            n += images.shape[0]
        seconds = time.perf_counter() - start
        now = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        used = sum(a.ru_utime + a.ru_stime - b.ru_utime - b.ru_stime for a, b in zip(now, former))
        best, cpu = max(best, n / seconds), min(cpu, used / n * 1e3)
    return {'workers': workers, 'rate': best, 'cpu': cpu}


def run_ours(folder):
    import gtorch as torch
    from gtorch import transforms, vision

    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224),
                                transforms.ConvertImageDtype(torch.float32), transforms.Normalize(MEAN, DEVIATION)])
    images = vision.ImageFolder(folder, steps)
    for workers in (1, 2):
        # the loader in C, with threads: no sample needs Python's lock
        loader = torch._namespace.DataLoader(dataset=images, batch_size=32, num_workers=workers)
        yield {'side': 'GTorch', **measure(lambda loader=loader: loader, workers)}


def run_peer(folder):
    import torch
    from torchvision import datasets, transforms
    from torchvision.io import decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    pillow = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(),
                                 transforms.Normalize(MEAN, DEVIATION)])
    tensors = v2.Compose([v2.Resize(256), v2.CenterCrop(224), v2.ToDtype(torch.float32, scale=True),
                          v2.Normalize(MEAN, DEVIATION)])
    sides = {
        'Pillow': datasets.ImageFolder(folder, pillow),
        'torchvision.io': datasets.ImageFolder(folder, tensors, loader=lambda path: decode_image(path, mode='RGB')),
    }
    for name, images in sides.items():
        for workers in (1, 2):
            loader = torch.utils.data.DataLoader(images, batch_size=32, num_workers=workers)
            yield {'side': f'PyTorch, {name}', **measure(lambda loader=loader: loader, workers)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('folder')
    parser.add_argument('--ours', default='python3')
    parser.add_argument('--peer', default='')
    parser.add_argument('--side', choices=['ours', 'peer'])
    args = parser.parse_args()
    if args.side:
        for row in (run_ours if args.side == 'ours' else run_peer)(args.folder):
            print('ROW ' + json.dumps(row), flush=True)
        return
    print('| side | workers | images/s | processor, ms an image |\n|---|---|---|---|')
    for side, command in (('ours', args.ours), ('peer', args.peer)):
        if not command:
            continue
        done = subprocess.run([*shlex.split(command), __file__, args.folder, '--side', side], capture_output=True,
                              text=True, check=False)
        rows = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith('ROW ')]
        for row in rows:
            print(f'| {row["side"]} | {row["workers"]} | {row["rate"]:.0f} | {row["cpu"]:.2f} |')
        if done.returncode != 0:
            print(done.stderr[-2000:])


if __name__ == '__main__':
    main()
