#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs with mixed precision and with ranges for tools, as PyTorch's users write them."""

import gtorch.cuda.nvtx as nvtx
from gtorch.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd

from gpus import near, raises, tap, torch

cuda = torch.cuda
nn = torch.nn


@tap.case
def a_network_is_trained_with_scaled_gradients():
    torch.manual_seed(1)
    model = nn.Linear(8, 4).cuda()
    optimizer, scaler, criterion = torch.optim.Adam(model.parameters(), lr=0.05), GradScaler(), nn.MSELoss()
    batches = [(torch.randn(16, 8), torch.zeros(16, 4)) for _ in range(2)]
    losses = []
    for _epoch in range(10):
        for batch, target in batches:
            batch, target = batch.cuda(), target.cuda()
            optimizer.zero_grad()
            with autocast():
                output = model(batch)
                loss = criterion(output, target)
            assert output.dtype == torch.float16
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses


@tap.case
def scalers_have_settings():
    scaler = GradScaler(1024.0, 4.0, 0.25, 10)
    assert isinstance(scaler, torch.amp.GradScaler) and scaler.get_scale() == 1024
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (4.0, 0.25, 10)
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.5)
    scaler.set_growth_interval(7)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.5, 7)
    raises(ValueError, 'growth', scaler.set_growth_factor, 0.5)
    scaler.set_growth_factor(2.0)
    other = torch.amp.GradScaler('cuda')
    other.load_state_dict(state_dict=scaler.state_dict())
    assert other.get_growth_interval() == 7 and other.get_scale() == 1024
    assert not cuda.amp.amp_definitely_not_available() and not GradScaler(enabled=False).is_enabled()


class InFloat32(torch.autograd.Function):
    """A square that is always computed in float32."""

    seen = []

    @staticmethod
    @custom_fwd(cast_inputs=torch.float32)
    def forward(ctx, x):
        InFloat32.seen.append((x.dtype, torch.is_autocast_enabled('cuda')))
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @custom_bwd
    def backward(ctx, grad):
        InFloat32.seen.append((grad.dtype, torch.is_autocast_enabled('cuda')))
        return 2 * ctx.saved_tensors[0] * grad


class AsAround(torch.autograd.Function):
    """A product in the precision of its caller, with a backward pass alike."""

    seen = []

    @staticmethod
    @torch.amp.custom_fwd(device_type='cuda')
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @torch.amp.custom_bwd(device_type='cuda')
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        AsAround.seen.append((grad @ b.T).dtype)
        return grad @ b.T, a.T @ grad


@tap.case
def functions_of_a_program_choose_their_precision():
    x = torch.full((3,), 3.0, device='cuda', dtype=torch.float16).requires_grad_()
    with autocast():
        y = InFloat32.apply(x)
    y.sum().backward()
    assert InFloat32.seen == [(torch.float32, False)] * 2 and y.dtype == torch.float32 and x.grad.dtype == torch.float16
    near(x.grad, [6.0] * 3)
    InFloat32.apply(x)
    assert InFloat32.seen[-1] == (torch.float16, False)
    a, b = (torch.ones(2, 2, device='cuda').requires_grad_() for _ in range(2))
    with autocast():
        assert AsAround.apply(a, b).dtype == torch.float16
        AsAround.apply(a, b).sum().backward()
    near(a.grad, [[2.0, 2.0]] * 2)
    AsAround.apply(a, b).sum().backward()
    assert AsAround.seen == [torch.float16, torch.float32]


@tap.case
def precision_of_products_is_a_setting():
    if cuda.is_tf32_supported():
        torch.backends.cuda.matmul.allow_tf32 = True
    if cuda.is_bf16_supported():
        assert torch.randn(10, 10, dtype=torch.bfloat16, device='cuda').dtype == torch.bfloat16
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    a, b = (torch.randn(64, 64, dtype=torch.double, device='cuda') for _ in range(2))
    near(a.float() @ b.float(), a @ b, 1e-4)


@tap.case
def ranges_have_names():
    model = nn.Linear(2, 2).cuda()
    nvtx.range_push('forward pass')
    output = model(torch.ones(1, 2, device='cuda'))
    nvtx.range_pop()
    with nvtx.range('backward pass {}', 1):
        output.sum().backward()
    number = nvtx.range_start('apart')
    nvtx.mark('here')
    nvtx.range_end(number)

    @nvtx.range('call')
    def call(x):
        return x + 1

    assert call(1) == 2 and cuda.nvtx is nvtx
    raises(TypeError, 'msg must be a text', nvtx.range_push, 3)


if __name__ == '__main__':
    tap.main()
