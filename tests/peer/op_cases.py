# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Computes one operator's samples with both libraries."""

import sys
import warnings

import torch
from gi.repository import GLib, GTorch
from op_names import Missing, forms, rebuild
from op_values import (
    DTYPES,
    TOLERANCES,
    Unmapped,
    differs,
    flat,
    sample_text,
    tensors,
    tensors_differ,
    to_ours,
    to_theirs,
)
from torch.testing._internal.opinfo.core import OpInfo

warnings.simplefilter('ignore')
# Their results are not set.
UNSET = ('empty', 'resize_')
# Any of several equal elements may be what these find.
TIED = ('argsort', 'kthvalue', 'mode', 'msort', 'sort', 'topk')
EXACT = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
         torch.complex64: torch.complex128}  # fmt: skip
default_wrapper = OpInfo.__dataclass_fields__['gradcheck_wrapper'].default
seed = 42


def wrapper_set_seed(function, *args, **options):
    torch.manual_seed(seed)
    return function(*args, **options)


for _module in list(sys.modules.values()):
    if hasattr(_module, 'wrapper_set_seed') and _module.__name__.startswith('torch.testing'):
        _module.wrapper_set_seed = wrapper_set_seed


def copies(value, requires_grad=False):
    """Copies of PyTorch's tensors in what an operator is given."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(requires_grad and value.requires_grad)
    if isinstance(value, dict):
        return {key: copies(one, requires_grad) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        made = [copies(one, requires_grad) for one in value]
        return tuple(made) if isinstance(value, tuple) else made
    return value


def widened(value):
    """What an operator is given, with tensors in double precision."""
    if isinstance(value, torch.Tensor):
        return value.to(EXACT.get(value.dtype, value.dtype))
    if isinstance(value, torch.dtype):
        return EXACT.get(value, value)
    if isinstance(value, dict):
        return {key: widened(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        made = [widened(one) for one in value]
        return tuple(made) if isinstance(value, tuple) else made
    return value


class Call:
    """One sample in one form: the functions and what they are given."""

    def __init__(self, theirs, ours, sample, in_place):
        self.theirs, self.ours, self.sample, self.in_place = theirs, ours, sample, in_place

    def given(self, requires_grad=False):
        sample = self.sample
        return copies((sample.input, sample.args, sample.kwargs), requires_grad)

    def run_theirs(self, given):
        first, args, options = given
        torch.manual_seed(seed)
        found = self.theirs(first, *args, **options)
        return (found, first) if self.in_place else found

    def run_ours(self, given):
        first, args, options = given
        found = self.ours(first, *args, **options)
        return (found, first) if self.in_place else found

    def theirs_is_random(self, expected):
        """Does PyTorch itself give something else with other random numbers?"""
        global seed
        try:
            for seed in range(50, 58):
                again = self.run_theirs(self.given())
                pairs = zip(tensors(expected), tensors(again))
                if any(a.shape != b.shape or tensors_differ(a.detach(), b.detach()) for a, b in pairs):
                    return True
        finally:
            seed = 42
        return False

    def is_as_exact(self, expected, ours):
        """Is a result in few bits as near to that in float64 as PyTorch's?"""
        if not any(t.dtype in EXACT for t in tensors(expected)):
            return False
        try:
            exact = self.run_theirs(widened(self.given()))
        except Exception:
            return False
        for a, b, c in zip(tensors(expected), tensors(ours), tensors(exact)):
            if a.dtype not in EXACT:
                if tensors_differ(a, to_theirs(b)):
                    return False
                continue
            c = c.to(EXACT[a.dtype])
            limit = (a.to(c.dtype) - c).abs().nan_to_num(0).max() * 2
            error = (to_theirs(b).to(c.dtype) - c).abs()
            same = torch.isclose(to_theirs(b).to(c.dtype), c, rtol=TOLERANCES[a.dtype][0], atol=0, equal_nan=True)
            if not (same | (error <= limit)).all():
                return False
        return True

    def is_another_tie(self, op, expected, ours):
        """Are the indices of other elements that are equal?"""
        if op.name not in TIED or not isinstance(self.sample.input, torch.Tensor):
            return False
        a, b = tensors(expected), tensors(ours)
        if len(a) == 2 and differs(a[0], b[0]):
            return False
        kept = (*self.sample.args, *self.sample.kwargs.values())
        last = next((x for x in reversed(kept) if type(x) is int), -1) if op.name != 'topk' else None
        whole = self.sample.input
        dims = [last] if last is not None else []
        dims += [d for d in range(-whole.ndim, 0)]
        for dim in dims:
            try:
                pair = [whole.gather(dim, i) if i.ndim == whole.ndim else whole.gather(dim, i.unsqueeze(dim))
                        for i in (a[-1], to_theirs(b[-1]))]  # fmt: skip
            except (RuntimeError, IndexError):
                continue
            if not tensors_differ(*pair):
                return True
        return False

    def processed(self):
        """Functions that take what a result leaves open, such as signs, from it."""
        process = self.sample.output_process_fn_grad
        return process, rebuild(process)

    def compare(self, op):
        """Returns a kind and a message, or None for a sample that PyTorch itself does not take."""
        try:
            expected = self.run_theirs(self.given())
        except Exception as error:
            return self._both_raise(error)
        try:
            ours = self.run_ours(to_ours(self.given()))
        except Unmapped as why:
            return 'skipped', str(why)
        except Missing as why:
            return 'missing', str(why)
        except (GLib.Error, Exception) as error:
            return 'raises', f'{type(error).__name__}: {getattr(error, "message", None) or error}'
        return self._values(op, expected, ours)

    def _both_raise(self, expected):
        """PyTorch does not run the sample in this form."""
        try:
            self.run_ours(to_ours(self.given()))
        except (GLib.Error, Exception):
            return 'ok', ''
        return 'accepted', f'PyTorch raises {type(expected).__name__}: {str(expected):.120}'

    def _values(self, op, expected, ours):
        has_values = not any(op.name.startswith(name) or f'_{name}' in op.name for name in UNSET)
        found = differs(expected, ours, has_values)
        if found and found[0] == 'wrong':
            if self.theirs_is_random(expected) or self.is_as_exact(expected, ours):
                return 'ok', ''
            if self.is_another_tie(op, expected, ours):
                return 'ok', ''
            if not self.in_place:
                theirs, rebuilt = self.processed()
                found = differs(theirs(expected), rebuilt(ours)) or None
        return found or ('ok', '')

    def gradients(self, op):
        """Compares the gradients, for what PyTorch differentiates."""
        theirs, ours = self.processed()
        given = self.given(True)
        wanted = [t for t in tensors(given) if t.requires_grad]
        # a wrapper keeps an operand within what the function is defined for; that of masks only changes results
        if op.gradcheck_wrapper is not default_wrapper and 'masked' not in op.gradcheck_wrapper.__name__:
            wrapper, rebuilt = op.gradcheck_wrapper, rebuild(op.gradcheck_wrapper)
            run_theirs, run_ours = self.theirs, self.ours
            self.theirs = lambda *args, **options: wrapper(run_theirs, *args, **options)
            self.ours = lambda *args, **options: rebuilt(run_ours, *args, **options)
        results = theirs(self.run_theirs(given))
        places = [
            i for i, t in enumerate(flat(results)) if isinstance(t, torch.Tensor) and t.requires_grad and t.numel()
        ]
        if not wanted or not places:
            return None
        outputs = [flat(results)[i] for i in places]
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(t.shape, dtype=t.dtype, generator=generator) for t in outputs]
        expected = torch.autograd.grad(outputs, wanted, weights, allow_unused=True)
        try:
            own = to_ours(given, True)
            leaves = [t for t in tensors(own) if t.requires_grad]
            found = flat(ours(self.run_ours(own)))
            made = [found[i] for i in places]
            if not all(t.requires_grad for t in made):
                if not any(t is not None and t.count_nonzero() for t in expected):
                    return None
                return 'gradraises', 'a result that has a gradient in PyTorch requires none'
            got = GTorch.autograd.grad(made, leaves, [to_ours(w) for w in weights], allow_unused=True)
        except Unmapped as why:
            return 'skipped', str(why)
        except (GLib.Error, Exception) as error:
            return 'gradraises', f'{type(error).__name__}: {getattr(error, "message", None) or error}'
        found = self._gradients_differ(expected, got)
        return None if found and self.theirs_is_random(self.run_theirs(self.given())) else found

    def _gradients_differ(self, expected, got):
        for i, (a, b) in enumerate(zip(expected, got)):
            if a is None and b is None:
                continue
            if a is None or b is None:
                zero = b is not None and not to_theirs(b).count_nonzero() or a is not None and not a.count_nonzero()
                if not zero:
                    return 'gradwrong', f'gradient {i}: {"there is none" if b is None else "there is one"}'
                continue
            found = differs(a, b)
            if found:
                return 'gradwrong', f'gradient {i}: {found[1]}'
        return None


def samples_of(op, dtype, options):
    """The samples of an operator, evenly chosen from all that there are."""
    requires_grad = op.supports_autograd and dtype in (torch.float64, torch.complex128)
    torch.manual_seed(0)
    found = list(op.sample_inputs('cpu', dtype, requires_grad=requires_grad))
    if options.reference and op.reference_inputs_func is not None:
        found += list(op.reference_inputs('cpu', dtype, requires_grad=requires_grad))
    if len(found) > options.max:
        found = [found[i * len(found) // options.max] for i in range(options.max)]
    if options.strided:
        found += [sample.noncontiguous() for sample in found]
    return found


def is_differentiable(op, dtype):
    supported = op.supported_backward_dtypes('cpu')
    return op.supports_autograd and dtype in supported and dtype in (torch.float64, torch.complex128)


class Missed:
    """In place of a function that is not there."""

    def __init__(self, why):
        self.why = why

    def __call__(self, *_args, **_options):
        raise self.why


def cases(op, options):
    """Yields form, name of the dtype, text of the sample and a function that compares."""
    for form, theirs, search in forms(op):
        try:
            ours = search()
        except Missing as why:
            ours = Missed(why)
        is_main = form == 'function'
        for name in options.dtypes or DTYPES:
            dtype = getattr(torch, name)
            if dtype not in op.supported_dtypes('cpu'):
                continue
            try:
                samples = samples_of(op, dtype, options)
            except Exception as error:
                yield form, name, '', lambda error=error: ('skipped', f'no samples: {error!r:.200}')
                continue
            for sample in samples if is_main or ' ' not in form else samples[:2]:
                in_place = form.startswith('inplace')
                if in_place and sample.broadcasts_input:
                    continue
                if not is_main and not isinstance(sample.input, torch.Tensor):
                    continue
                call = Call(theirs, ours, sample, in_place)
                shown = sample_text(sample)
                yield form, name, shown, lambda call=call: call.compare(op)
                if is_main and is_differentiable(op, dtype) and not isinstance(ours, Missed):
                    yield 'gradient', name, shown, lambda call=call: call.gradients(op)
            if isinstance(ours, Missed):
                break
