# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions of all parameters together: GTorch.nn.utils."""

from gi.overrides import _gtorch_arguments as arguments
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double
from gi.overrides._gtorch_init import former

MEMORY_FORMATS = (arguments.contiguous_format, arguments.channels_last, arguments.channels_last_3d)


def _tensors(name, key, given):
    """Returns a list of tensors; PyTorch takes a single one, too."""
    found = [given] if isinstance(given, RawTensor) else list(given)
    for one in found:
        if not isinstance(one, RawTensor):
            raise TypeError(f'{name}(): {key} must be tensors, not {type(one).__name__}')
    return found


def _form(name, foreach):
    """There is one implementation, which gives the same results."""
    if foreach is not None and not isinstance(foreach, bool):
        raise TypeError(f'{name}(): foreach must be True, False or None, not {foreach!r}')


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements of some tensors."""
    _form('get_total_norm', foreach)
    given = _tensors('get_total_norm', 'tensors', tensors)
    return GTorch.get_total_norm(given, convert_double(norm_type), convert_bool(error_if_nonfinite))


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales gradients whose norm is known so that it is at most max_norm."""
    _form('clip_grads_with_norm_', foreach)
    given = _tensors('clip_grads_with_norm_', 'parameters', parameters)
    GTorch.clip_grads_with_norm(given, convert_double(max_norm), total_norm)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales gradients so that the norm of all of them together is at most max_norm; returns the norm before."""
    _form('clip_grad_norm_', foreach)
    given = _tensors('clip_grad_norm_', 'parameters', parameters)
    return GTorch.clip_grad_norm(
        given, convert_double(max_norm), convert_double(norm_type), convert_bool(error_if_nonfinite)
    )


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limits each element of gradients to the range from -clip_value to clip_value."""
    _form('clip_grad_value_', foreach)
    GTorch.clip_grad_value(_tensors('clip_grad_value_', 'parameters', parameters), convert_double(clip_value))


def parameters_to_vector(parameters):
    """The elements of all parameters in one vector."""
    return GTorch.parameters_to_vector(_tensors('parameters_to_vector', 'parameters', parameters))


def vector_to_parameters(vec, parameters):
    """Copies the elements of a vector into parameters."""
    GTorch.vector_to_parameters(vec, _tensors('vector_to_parameters', 'parameters', parameters))


def skip_init(module_cls, *args, **kwargs):
    """A module whose first values are of no account: no random numbers are drawn for it."""
    from gi.overrides._gtorch_unpickle import same_random_numbers

    if not (isinstance(module_cls, type) and issubclass(module_cls, GTorch.Module)):
        raise RuntimeError(f'skip_init(): Expected a Module; got {module_cls!r}')
    with same_random_numbers():
        return module_cls(*args, **kwargs)


def _convert(name, module, memory_format):
    if not isinstance(module, GTorch.Module):
        raise TypeError(f'{name}(): module must be a Module, not {type(module).__name__}')
    if memory_format not in MEMORY_FORMATS:
        raise TypeError(f'{name}(): memory_format must be one of {list(MEMORY_FORMATS)}, not {memory_format!r}')
    getattr(module, name)(arguments.format_of(memory_format))
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Changes the order in memory of the weights of all convolutions of images, those within the module too."""
    return _convert('convert_conv2d_weight_memory_format', module, memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Changes the order in memory of the weights of all convolutions of volumes."""
    return _convert('convert_conv3d_weight_memory_format', module, memory_format)


def functions():
    found = (
        get_total_norm,
        clip_grads_with_norm_,
        clip_grad_norm_,
        clip_grad_value_,
        parameters_to_vector,
        vector_to_parameters,
        skip_init,
        convert_conv2d_weight_memory_format,
        convert_conv3d_weight_memory_format,
    )
    old = former('clip_grad_norm', clip_grad_norm_, 'nn.utils')
    return {**{function.__name__: function for function in found}, 'clip_grad_norm': old}
