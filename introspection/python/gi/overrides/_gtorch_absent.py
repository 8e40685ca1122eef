# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of PyTorch that there are not, and what programs use in their place: the text of the AttributeError."""

DENSE = 'all tensors are dense'
QUANTIZED = 'there are no quantized tensors: bfloat16 and autocast make models smaller and faster'
EIGHT_BITS = 'there are no dtypes of 8-bit floating-point numbers: use matmul() of bfloat16 or float16'
OF_SYNC = "it is a part of PyTorch's SyncBatchNorm, which is a layer here"
DEVICES = "there are the CPU and NVIDIA's GPUs: use to('cpu') or cuda()"
COMPILER = 'there is no compiler and no TorchScript; cuda.make_graphed_callables() replays launches as one'
OWN_PART = "it is a part of PyTorch's own code"
LAZY = 'layers such as LazyLinear make them; Module.has_uninitialized_params() tells whether there are any'

TORCH = {
    'ScriptModule': COMPILER, 'export': COMPILER, 'fx': COMPILER, 'jit': COMPILER,
    '_dynamo': COMPILER, 'onnx': 'models are stored by save(), or by safetensors, and are not converted to ONNX',
    'batch_norm_elemt': OF_SYNC, 'batch_norm_gather_stats': OF_SYNC, 'batch_norm_gather_stats_with_counts': OF_SYNC,
    'batch_norm_stats': OF_SYNC, 'batch_norm_update_stats': OF_SYNC,
    'chalf': 'there is no dtype complex32: use complex64',
    'complex32': 'there is no dtype complex32: use complex64',
    'choose_qparams_optimized': QUANTIZED, 'empty_quantized': QUANTIZED, 'qint8': QUANTIZED, 'qscheme': QUANTIZED,
    'quantize_per_tensor': QUANTIZED, 'quantize_per_channel': QUANTIZED, 'quint8': QUANTIZED, 'ao': QUANTIZED,
    'quantization': QUANTIZED,
    'classproperty': OWN_PART, 'get_file_path': OWN_PART, 'prepare_multiprocessing_environment': OWN_PART,
    'slice_inverse': OWN_PART, 'thread_safe_generator': OWN_PART,
    'compiled_with_cxx11_abi': 'there is no interface in C++: the library is one of C',
    'eig': 'use linalg.eig()', 'lstsq': 'use linalg.lstsq()', 'matrix_rank': 'use linalg.matrix_rank()',
    'solve': 'use linalg.solve()', 'symeig': 'use linalg.eigh()',
    'float8_e4m3fn': EIGHT_BITS, 'float8_e5m2': EIGHT_BITS,
    'hash_tensor': 'there is no dtype uint64',
    'uint16': 'there is no such dtype: use int32', 'uint32': 'there is no such dtype: use int64',
    'uint64': 'there is no such dtype: use int64 or float64',
    'hspmm': DENSE, 'smm': DENSE, 'sspaddmm': DENSE, 'sparse': DENSE, 'sparse_coo_tensor': DENSE,
    'sparse_csr_tensor': DENSE, 'sparse_coo': DENSE, 'values_copy': DENSE, 'nested': f'{DENSE}: use nn.utils.rnn',
    'set_warn_always': "warnings are Python's: use warnings.simplefilter('always')",
    'is_warn_always_enabled': "warnings are Python's: use warnings.simplefilter('always')",
    'hub': 'there is no hub of models: load their weights by load() or safetensors',
    'distributions': 'draw by normal(), poisson(), binomial(), bernoulli(), multinomial() and Tensor.exponential_()',
    'mps': DEVICES, 'xpu': DEVICES, 'mtia': DEVICES, 'xla': DEVICES,
}  # fmt: skip
TENSOR = {
    'chalf': TORCH['chalf'], 'hash_tensor': TORCH['hash_tensor'], 'eig': TORCH['eig'], 'lstsq': TORCH['lstsq'],
    'solve': TORCH['solve'], 'symeig': TORCH['symeig'],
    'coalesce': DENSE, 'col_indices': DENSE, 'crow_indices': DENSE, 'indices': DENSE, 'smm': DENSE, 'sspaddmm': DENSE,
    'sparse_mask': DENSE, 'sparse_resize_': DENSE, 'to_sparse': DENSE, 'to_sparse_csr': DENSE, 'values': DENSE,
    'to_padded_tensor': f'{DENSE}: use nn.utils.rnn.pad_sequence()',
    'module_load': 'use copy_()', 'output_nr': 'grad_fn tells the operation, not the number of its result',
    'dequantize': QUANTIZED, 'int_repr': QUANTIZED, 'q_scale': QUANTIZED, 'q_zero_point': QUANTIZED,
    'qscheme': QUANTIZED, 'slice_inverse': OWN_PART,
    'ipu': DEVICES, 'mtia': DEVICES, 'xpu': DEVICES, 'to_mkldnn': "the CPU's operations need no layout of their own",
    'reinforce': 'multiply the logarithm of the probability by the reward, and call backward()',
    'resize': 'use reshape(), or resize_() for another number of elements',
    'resize_as': 'use reshape(), or resize_as_() for another number of elements',
    'refine_names': 'dimensions have no names', 'rename': 'dimensions have no names',
    'align_to': 'dimensions have no names', 'names': 'dimensions have no names',
}  # fmt: skip
NN = {
    'Container': 'use Module',
    'UninitializedBuffer': LAZY, 'UninitializedParameter': LAZY,
    'factory_kwargs': OWN_PART, 'quantized': QUANTIZED, 'qat': QUANTIZED, 'intrinsic': QUANTIZED,
}  # fmt: skip
FUNCTIONAL = {
    'ScalingType': EIGHT_BITS, 'SwizzleType': EIGHT_BITS, 'scaled_grouped_mm': EIGHT_BITS, 'scaled_mm': EIGHT_BITS,
    'grouped_mm': 'use matmul() of each group, or bmm() of groups of one size',
    'assert_int_or_pair': OWN_PART, 'handle_torch_function': 'tensors have one class, which is not derived from',
    'has_torch_function': 'tensors have one class, which is not derived from',
}  # fmt: skip
MODULE = {
    'ipu': DEVICES, 'mtia': DEVICES, 'xpu': DEVICES,
    'register_backward_hook': 'use register_full_backward_hook()',
}  # fmt: skip
AUTOGRAD = {
    'NestedIOFunction': 'use Function',
    'set_multithreading_enabled': 'a backward pass runs in the thread that calls it',
    'kineto_available': 'profiler tells what it records', 'profiler': 'use gtorch.profiler',
}  # fmt: skip
CHECKPOINT = {
    'CheckpointError': 'errors of checkpoints are RuntimeErrors',
    'CheckpointFunction': OWN_PART, 'GraphExecGroup': OWN_PART, 'SelectiveCheckpointContext': OWN_PART,
    'check_backward_validity': OWN_PART, 'detach_variable': 'use detach()',
    'CheckpointPolicy': 'call checkpoint() for the parts whose values are to be computed again',
    'create_selective_checkpoint_contexts': 'call checkpoint() for the parts whose values are to be computed again',
    'DefaultDeviceType': 'the device is that of the tensors',
    'get_device_states': 'use random.fork_rng()', 'set_device_states': 'use random.fork_rng()',
    'set_checkpoint_debug_enabled': 'what a checkpoint computes again is not compared',
}  # fmt: skip
PROFILER = {'ExecutionTraceObserver': 'profile() and export_chrome_trace() record what is executed'}
FUNC = {
    'debug_unwrap': 'tensors are not wrapped', 'functionalize': COMPILER,
    'replace_all_batch_norm_modules_': 'build the norms with track_running_stats=False',
}  # fmt: skip
# Those of optim and distributed are in the files of these.
SPACES = {
    '': TORCH, 'autograd': AUTOGRAD, 'func': FUNC, 'nn': NN, 'nn.functional': FUNCTIONAL,
    'nn.parameter': NN, 'profiler': PROFILER, 'utils.checkpoint': CHECKPOINT,
}  # fmt: skip


def text(space, name):
    """What the error of a missing name adds: nothing for those that nobody knows."""
    why = SPACES.get(space, {}).get(name)
    return '' if why is None else f': {why}'


def _finder(space, shown, former):
    def find(name):
        if name in SPACES[space]:
            raise AttributeError(f'{shown} has no {name}{text(space, name)}', name=name)
        if former is not None:
            return former(name)
        raise AttributeError(f'module {shown!r} has no attribute {name!r}', name=name)

    return find


def _of_tensor(self, name):
    why = TENSOR.get(name)
    text = '' if why is None else f': {why}'
    raise AttributeError(f'{type(self).__name__} has no attribute {name!r}{text}', name=name)


def install(modules, prefix, tensor):
    """Lets the submodules and tensors say so."""
    tensor.__getattr__ = _of_tensor
    for space in SPACES:
        module = modules.get(f'{prefix}.{space}') if space else None
        if module is not None:
            shown = module.__name__.partition('gi.repository.')[2]
            module.__getattr__ = _finder(space, shown, vars(module).get('__getattr__'))
