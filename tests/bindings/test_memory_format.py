# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Images whose channels are last in memory."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'style'))

import gtorch as torch  # noqa: E402
import tap  # noqa: E402
from gtorch import nn  # noqa: E402
from gtorch.nn import functional as F  # noqa: E402

LAST, LAST_3D = torch.channels_last, torch.channels_last_3d


def images(*shape):
    return torch.randn(*shape).to(memory_format=LAST if len(shape) == 4 else LAST_3D)


def is_last(x):
    return x.is_contiguous(memory_format=LAST if x.ndim == 4 else LAST_3D) and not x.is_contiguous()


@tap.case
def tensors_have_formats():
    x = torch.randn(2, 3, 4, 5)
    last = x.to(memory_format=LAST)
    assert last.stride() == (60, 1, 15, 3) and last.tolist() == x.tolist()
    assert last.to(memory_format=LAST) is last and x.contiguous(memory_format=torch.contiguous_format) is x
    assert is_last(last) and x.is_contiguous() and not x.is_contiguous(memory_format=LAST)
    assert last.contiguous().stride() == x.stride()
    assert x.contiguous(memory_format=LAST).stride() == last.stride()
    copy = last.clone(memory_format=LAST)
    assert is_last(copy) and copy.data_ptr() != last.data_ptr()
    assert is_last(x.double(memory_format=LAST)) and is_last(last.half()) and is_last(last.to(torch.float64))
    assert last.to(torch.float64, memory_format=torch.contiguous_format).is_contiguous()
    assert is_last(torch.empty(2, 3, 4, 5, memory_format=LAST)) and is_last(torch.zeros_like(x, memory_format=LAST))
    volume = torch.randn(2, 3, 4, 5, 6).to(memory_format=LAST_3D)
    assert volume.stride() == (360, 1, 90, 18, 3)
    # one channel, and images of one pixel, are in both formats
    for shape in ((2, 1, 4, 5), (2, 3, 1, 1)):
        one = torch.randn(*shape)
        assert one.to(memory_format=LAST) is one and one.is_contiguous(memory_format=LAST)
    x.requires_grad_()
    (x.to(memory_format=LAST) * 2).sum().backward()
    assert x.grad.unique().tolist() == [2]


@tap.case
def wrong_formats_are_refused():
    x = torch.randn(3, 4)
    tap.raises(RuntimeError, lambda: x.to(memory_format=LAST), '4 dimensions are wanted')
    tap.raises(RuntimeError, lambda: torch.randn(1, 2, 3, 4).contiguous(memory_format=LAST_3D), '5 dimensions')
    assert not x.is_contiguous(memory_format=LAST)
    for call in (x.to, x.contiguous, x.clone, x.is_contiguous, nn.Linear(1, 1).to):
        tap.raises(TypeError, lambda call=call: call(memory_format=1), 'memory_format must be')
    tap.raises(Exception, lambda: nn.LazyConv2d(3, 3).to(memory_format=LAST), 'no elements yet')


@tap.case
def results_keep_the_format():
    x, y = images(2, 6, 8, 8), images(2, 6, 8, 8)
    scale = torch.rand(6, 1, 1)
    for name, result in {
        'add': x + y, 'number': 1 - x, 'mul': x * scale, 'scale first': scale * x, 'relu': F.relu(x),
        'compare': x > 0, 'clamp': x.clamp(0, 1), 'gelu': F.gelu(x),
        'max_pool2d': F.max_pool2d(x, 2), 'avg_pool2d': F.avg_pool2d(x, 3, 2, 1),
        'adaptive': F.adaptive_avg_pool2d(x, 2),
        'conv2d': F.conv2d(x, torch.randn(5, 6, 3, 3)), 'batch_norm': nn.BatchNorm2d(6)(x),
        'fixed statistics': nn.BatchNorm2d(6).eval()(x), 'half': x.half(), 'neg': -x,
    }.items():  # fmt: skip
        assert is_last(result), name
    assert (x.contiguous() + y).is_contiguous(), 'the first operand decides'
    assert (torch.randn(2, 6, 8, 8) * scale).is_contiguous()
    assert is_last(F.max_pool3d(images(2, 4, 4, 4, 4), 2)) and is_last(F.relu(images(2, 4, 4, 4, 4)))
    z = torch.zeros(2, 6, 8, 8)
    torch.add(x, y, out=z)  # the result's own order
    assert z.is_contiguous() and torch.equal(z, x + y)
    z += x
    assert z.is_contiguous()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norms[0](self.first(x))), 2)
        x = F.relu(x + self.norms[1](self.second(x)))
        self.between = x
        return self.out(F.adaptive_avg_pool2d(x, 1).flatten(1))


@tap.case
def networks_compute_the_same():
    torch.manual_seed(1)
    plain, last = Net(), Net()
    last.load_state_dict(plain.state_dict())
    assert last.to(memory_format=LAST) is last
    assert is_last(last.second.weight) and last.out.weight.is_contiguous()
    x, target = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    for dtype in (None, torch.bfloat16):
        losses = []
        for net, given in ((plain, x), (last, x.to(memory_format=LAST))):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            for _ in range(3):
                optimizer.zero_grad()
                with torch.autocast('cpu', dtype=dtype or torch.bfloat16, enabled=dtype is not None):
                    loss = F.cross_entropy(net(given), target)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        near = 2e-5 if dtype is None else 5e-2
        assert all(abs(a - b) < near for a, b in zip(losses[:3], losses[3:])), losses
    assert is_last(last.between) and plain.between.is_contiguous()
    for (name, a), (_, b) in zip(plain.named_parameters(), last.named_parameters()):
        assert torch.allclose(a, b, atol=5e-2), name
    last.to(memory_format=torch.contiguous_format)
    assert last.second.weight.is_contiguous()


tap.main()
