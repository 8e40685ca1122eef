# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors, layers, optimizers and data types."""

import gtorch as torch
from gtorch import Tensor, nn, optim
from gtorch.nn import functional as F
from gtorch.optim.lr_scheduler import StepLR
from gtorch.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self, width: int, dtype: torch.DType = torch.float32) -> None:
        super().__init__()
        self.first = nn.Linear(3, width, dtype=dtype)
        self.last = nn.Sequential(nn.ReLU(), nn.Linear(width, 1, bias=False, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(F.gelu(self.first(x)))
        return result


def losses(steps: int) -> list[float]:
    torch.manual_seed(1)
    net = Net(8)
    optimizer = optim.AdamW(net.parameters(), lr=1e-2, betas=(0.9, 0.99))
    schedule = StepLR(optimizer, step_size=2, gamma=0.5)
    x = torch.randn(16, 3, dtype=torch.float32)
    y = x.sum(1, keepdim=True) * 2.0 + 1
    found: list[float] = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss: Tensor = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        found.append(float(loss))
    return found


def shapes() -> tuple[int, ...]:
    values, indices = torch.topk(torch.arange(6).reshape(2, 3).to(torch.float64), 2)
    with torch.no_grad():
        values = -values / 3 + torch.linalg.norm(values)
    assert values.device == torch.device('cpu') and indices.dtype == torch.int64
    parts = values.split(1, dim=1)
    return torch.cat(parts, dim=1).shape


class Rows(Dataset[tuple[Tensor, int]]):
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.ones(2), index

    def __len__(self) -> int:
        return 5


def batches() -> list[int]:
    loader: DataLoader[list[Tensor]] = DataLoader(Rows(), batch_size=2, shuffle=False, drop_last=True)
    return [int(labels.sum()) for _, labels in loader]


if __name__ == '__main__':
    print(losses(4), tuple(shapes()), batches())
