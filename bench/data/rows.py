# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""How fast PyTorch makes batches of rows of a tensor in memory: GB copied per second, of the best of five epochs.

PYTHON bench/data/rows.py

The rows are those of bench-loader, which has GTorch's side: run both on the same machine. `copy` is one copy of the
whole tensor, `select` index_select of the shuffled batches, and `batched` a loader of a data set whose __getitems__
selects, so that nothing is collated.
"""

import time

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

EPOCHS = 5


class Rows(Dataset):
    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitems__(self, indices):
        return self.x.index_select(0, torch.tensor(indices))


def best(epoch):
    rates = []
    for _ in range(EPOCHS):
        start = time.perf_counter()
        n_bytes = epoch()
        rates.append(n_bytes / (time.perf_counter() - start) / 1e9)
    return max(rates)


def count(batches):
    total = 0
    for batch in batches:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        total += x.numel() * x.element_size()
    return total


def plain(batch):
    return batch


def main():
    torch.manual_seed(1)
    print(f'{torch.get_num_threads()} threads, PyTorch {torch.__version__}')
    print('         row     copy   select    order  shuffled  2 workers  shuffled  batched  shuffled')
    for n, width, size in ((131072, 1024, 1024), (1024, 3 * 224 * 224, 32)):
        x = torch.ones(n, width)
        y = torch.empty_like(x)
        order = torch.randperm(n).split(size)
        results = [
            best(lambda x=x, y=y: y.copy_(x).numel() * 4),
            best(lambda x=x, order=order: count(x.index_select(0, index) for index in order)),
        ]
        for workers in (0, 2):
            for shuffle in (False, True):
                options = {'num_workers': workers, 'persistent_workers': workers > 0}
                loader = DataLoader(TensorDataset(x), size, shuffle, **options)
                results.append(best(lambda loader=loader: count(loader)))
        for shuffle in (False, True):
            loader = DataLoader(Rows(x), size, shuffle, collate_fn=plain)
            results.append(best(lambda loader=loader: count(loader)))
        print(f'{width * 4 / 1e3:9.1f} kB' + ''.join(f' {rate:8.2f}' for rate in results), flush=True)


if __name__ == '__main__':
    main()
