#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that choose, ask and move between devices, as PyTorch's users write them."""

import argparse
import ctypes
import os
import pickle

from gpus import IS_FAKE, elsewhere, equal, need, raises, tap, torch

cuda = torch.cuda


def place(x):
    return x.device.type, x.device.index


@tap.case
def tensors_follow_the_current_device():
    need(3)
    current, first, third = torch.device('cuda'), torch.device('cuda:0'), torch.device('cuda', 2)
    x = torch.tensor([1.0, 2.0], device=first)
    y = torch.tensor([3.0, 4.0]).cuda()
    assert place(x) == place(y) == ('cuda', 0) and current.index is None
    with cuda.device(1) as given:
        assert given is None and cuda.current_device() == 1
        made = [
            torch.tensor([1.0, 2.0], device=current),
            torch.tensor([1.0, 2.0], device='cuda'),
            torch.tensor([1.0, 2.0]).cuda(),
            torch.tensor([1.0, 2.0]).to(device=current),
            torch.tensor([1.0, 2.0]).to('cuda'),
        ]
        assert {place(one) for one in made} == {('cuda', 1)}
        assert place(made[0] + made[2]) == ('cuda', 1)
        total = x + y
        assert place(total) == ('cuda', 0)
        equal(total, [4.0, 6.0])
        moved = torch.randn(2, device=third), torch.randn(2).to(third), torch.randn(2).cuda(third)
        assert {place(one) for one in moved} == {('cuda', 2)}
    assert cuda.current_device() == 0
    cuda.set_device(1)
    assert place(torch.ones(1, device='cuda')) == ('cuda', 1)
    cuda.set_device(0)
    assert cuda.device(1).idx == 1 and cuda.device(None).idx == -1


@tap.case
def devices_are_values():
    one, other = torch.device('cuda', 0), torch.device('cuda:0')
    assert one == other and hash(one) == hash(other) and {one: 1}[other] == 1
    assert torch.device('cuda') != one and torch.device(type='cuda') == torch.device('cuda')
    assert torch.device(0) == one == torch.device(other) and str(one) == 'cuda:0'
    assert torch.device('cpu') != one and one != 'cuda:0'
    assert isinstance(torch.ones(1).device, torch.device)
    assert pickle.loads(pickle.dumps(one)) == one
    with torch.device('cuda:0'):
        assert place(torch.zeros(2)) == ('cuda', 0)
    assert place(torch.zeros(2))[0] == 'cpu'
    for wrong in ('meta', 'mps', 'cuda:x'):
        raises(RuntimeError, 'does not name a device', torch.device, wrong)


@tap.case
def a_program_asks_what_there_is():
    assert cuda.is_available() and cuda.is_initialized() and cuda.device_count() >= 1
    assert 0 <= cuda.current_device() < cuda.device_count() and cuda.get_device_name(0)
    info = cuda.get_device_properties(0)
    assert (info.major, info.minor) == cuda.get_device_capability(0) and info.name == cuda.get_device_name(0)
    assert info.total_memory > 2**20 and info.multi_processor_count >= 1 and info.warp_size == 32
    assert info.L2_cache_size > 0 and info.max_threads_per_multi_processor >= 1024 and info.is_integrated in (0, 1)
    assert f'major={info.major}' in repr(info) and len(info.uuid) == 36 and info.pci_bus_id >= 0
    assert info == cuda.get_device_properties() and 'multi_processor_count' in dir(info)
    raises(AttributeError, 'size_of_the_fan', lambda: info.size_of_the_fan)
    assert all(arch.startswith('sm_') for arch in cuda.get_arch_list())
    assert cuda.get_gencode_flags().count('-gencode') == len(cuda.get_arch_list())
    assert cuda.is_bf16_supported() in (True, False) and cuda.is_tf32_supported() in (True, False)
    status, text = elsewhere('print(torch.cuda.is_available(), torch.cuda.device_count())', CUDA_VISIBLE_DEVICES='0')
    assert (status, text) == (0, 'True 1\n'), text


@tap.case
def the_management_library_is_asked():
    if not IS_FAKE:
        assert 0 <= cuda.utilization() <= 100 and cuda.temperature() > 0 and cuda.clock_rate() > 0
        assert cuda.power_draw() > 1000 and cuda.device_memory_used() > 0 and 'GPU:0' in cuda.list_gpu_processes()
        return
    program = f'''
import ctypes, os
nvml = ctypes.CDLL(os.path.join({os.environ['GTORCH_CUDA_LIBRARY_PATH']!r}, 'libnvidia-ml.so.1'))
class Process(ctypes.Structure):
    _fields_ = [('pid', ctypes.c_uint), ('memory', ctypes.c_uint64)]
class Values(ctypes.Structure):
    _fields_ = [(f'n{{i}}', ctypes.c_uint) for i in range(6)] + [
        ('used', ctypes.c_uint64), ('n', ctypes.c_uint), ('processes', Process * 100), ('result', ctypes.c_int),
        ('power_result', ctypes.c_int)]
values = Values(50, 25, 61, 123456, 1410, 2000, 3 * 2**30, 1)
values.processes[0] = Process(77, 2**21)
nvml.fake_nvml_set(1, ctypes.byref(values))
cuda = torch.cuda
print(cuda.utilization(1), cuda.memory_usage(1), cuda.temperature(1), cuda.power_draw(1), cuda.clock_rate(1),
      cuda.device_memory_used(1))
print(cuda.list_gpu_processes(1))
'''
    assert ctypes.sizeof(ctypes.c_uint) == 4
    status, text = elsewhere(program)
    assert status == 0 and text.startswith(f'50 25 61 123456 1410 {3 * 2**30}\nGPU:1\nprocess '), text
    assert '77 uses        2.000 MB' in text, text


@tap.case
def the_device_can_be_an_option():
    parser = argparse.ArgumentParser()
    parser.add_argument('--disable-cuda', action='store_true')
    for given, kind in (([], 'cuda'), (['--disable-cuda'], 'cpu')):
        args = parser.parse_args(given)
        args.device = torch.device('cuda' if not args.disable_cuda and cuda.is_available() else 'cpu')
        x = torch.empty((8, 42), device=args.device)
        net = torch.nn.Linear(42, 3).to(device=args.device)
        assert net(x).device.type == net.weight.device.type == x.device.type == kind


@tap.case
def new_tensors_are_like_others():
    x, x_gpu, x_long = torch.empty(2), torch.empty(2, device='cuda'), torch.empty(2, dtype=torch.int64)
    equal(x.new_full([3, 2], fill_value=0.5), [[0.5, 0.5]] * 3)
    filled = x_gpu.new_full([3, 2], fill_value=-5)
    assert filled.device == x_gpu.device and filled.dtype == torch.float32
    equal(filled, [[-5.0, -5.0]] * 3)
    assert str(filled).count("device='cuda:0'") == 1
    assert x_long.new_tensor([[1, 2, 3]]).dtype == torch.int64
    ones, zeros = torch.ones_like(x_gpu), torch.zeros_like(x)
    assert ones.device == x_gpu.device and zeros.device == x.device
    one = torch.ones((2,)).cuda(0)
    assert one.get_device() == one.new_ones((3, 4)).get_device() == 0
    assert torch.zeros(4, 3).to(0).get_device() == 0 and torch.zeros(1).get_device() == -1


@tap.case
def modules_move_between_devices():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    assert net.to(torch.device('cuda:0')) is net and net[0].weight.is_cuda
    assert net.cuda() is net and not net.cpu()[0].weight.is_cuda
    x = torch.randn(5, 3)
    assert x.to('cuda').cpu().tolist() == x.tolist()
    on_gpu = x.to('cuda')
    assert on_gpu.to('cuda') is on_gpu and x.to('cpu') is x


@tap.case
def devices_have_modules():
    assert torch.get_device_module('cuda:0') is torch.cuda and torch.get_device_module('cpu') is torch.cpu
    assert torch.get_device_module() is torch.cuda
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1 and torch.cpu.current_device() == 'cpu'
    torch.cpu.synchronize()
    with torch.cpu.stream(torch.cpu.current_stream()), torch.cpu.amp.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    raises(ValueError, 'the processor was expected, not cuda:0', torch.cpu.set_device, 'cuda:0')
    gpus = torch.accelerator
    assert gpus.current_accelerator() == torch.device('cuda') and gpus.device_count() == cuda.device_count()
    assert gpus.current_device_index() == gpus.current_device_idx() == 0
    with gpus.device_index(0):
        gpus.synchronize()


@tap.case
def backends_tell_and_set():
    backends = torch.backends
    assert backends.cuda.is_built() and backends.cudnn.enabled
    version = backends.cudnn.version()
    assert backends.cudnn.is_available() == (version is not None) and (version is None or version > 8000)
    assert not backends.mps.is_available() and not backends.mps.is_built()
    assert not (backends.mkl.is_available() or backends.mkldnn.is_available() or backends.openmp.is_available())
    assert backends.cpu.get_cpu_capability() in ('DEFAULT', 'AVX2', 'AVX512')
    matmul = backends.cuda.matmul
    for name in ('allow_tf32', 'allow_fp16_reduced_precision_reduction', 'allow_bf16_reduced_precision_reduction'):
        before = getattr(matmul, name)
        setattr(matmul, name, not before)
        assert getattr(matmul, name) is (not before)
        setattr(matmul, name, before)
    assert matmul.allow_fp16_reduced_precision_reduction and not matmul.allow_fp16_accumulation
    with backends.cudnn.flags(benchmark=True, deterministic=True, allow_tf32=True):
        assert backends.cudnn.benchmark and backends.cudnn.deterministic and backends.cudnn.allow_tf32
    assert not (backends.cudnn.benchmark or backends.cudnn.deterministic or backends.cudnn.allow_tf32)
    raises(NotImplementedError, 'is always True', setattr, backends.cudnn, 'enabled', False)
    assert backends.cuda.preferred_linalg_library() == backends.cuda.preferred_linalg_library('cusolver') == 'cusolver'
    raises(NotImplementedError, "'magma' is not used", backends.cuda.preferred_linalg_library, 'magma')
    raises(ValueError, 'backend must be', backends.cuda.preferred_linalg_library, 'lapack')
    backends.cuda.enable_flash_sdp(True)
    assert backends.cuda.flash_sdp_enabled() and backends.cuda.math_sdp_enabled()
    raises(NotImplementedError, 'enable_math_sdp(): forms', backends.cuda.enable_math_sdp, False)


@tap.case
def plans_of_transforms_are_kept():
    try:
        torch.get_cuda_library_version('cufft')
    except RuntimeError as error:
        raise tap.Skip(str(error)) from None
    cache = torch.backends.cuda.cufft_plan_cache
    cache.clear()
    former = cache.max_size
    torch.fft.fft(torch.ones(12, dtype=torch.complex64, device='cuda'))
    assert cache.size == 1 and cache[0].size == 1 and cache[torch.device('cuda:0')].max_size == former
    cache[0].max_size = 10
    assert cache.max_size == 10
    cache.max_size = former
    cache.clear()
    assert cache.size == 0
    raises(AttributeError, 'no setting', setattr, cache, 'maximum', 3)


@tap.case
def older_types_say_dtype_and_device():
    x = torch.cuda.FloatTensor([1, 2])
    assert isinstance(x, torch.cuda.FloatTensor) and not isinstance(x, torch.FloatTensor) and place(x) == ('cuda', 0)
    assert x.type() == 'torch.cuda.FloatTensor' and x.type(torch.DoubleTensor).type() == 'torch.DoubleTensor'
    assert x.type('torch.cuda.LongTensor').tolist() == [1, 2] and x.type(torch.float16).dtype == torch.float16
    assert torch.LongTensor(2, 3).shape == (2, 3) and torch.HalfTensor().shape == (0,)
    assert torch.cuda.ByteTensor.dtype == torch.uint8 and torch.cuda.ByteTensor.is_cuda
    raises(TypeError, 'torch.cuda.FloatTensor', torch.FloatTensor, x)
    torch.set_default_tensor_type(torch.cuda.DoubleTensor)
    made = torch.ones(1)
    torch.set_default_tensor_type('torch.FloatTensor')
    assert place(made) == ('cuda', 0) and made.dtype == torch.float64 and place(torch.ones(1))[0] == 'cpu'


@tap.case
def what_is_absent_says_so():
    for call in (cuda.cudart, cuda.current_blas_handle, cuda.GreenContext):
        raises(NotImplementedError, 'is not there', call)
    cuda.check_error(cuda.cudaStatus.SUCCESS)
    raises(cuda.CudaError, 'gave 2', cuda.check_error, 2)
    assert cuda.get_sync_debug_mode() == 0 and cuda.set_sync_debug_mode('default') is None
    raises(NotImplementedError, 'not reported', cuda.set_sync_debug_mode, 'warn')
    raises(ValueError, 'debug_mode', cuda.set_sync_debug_mode, 'loud')


if __name__ == '__main__':
    tap.main()
