# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of PyTorch that stand for kinds of objects here: isinstance() knows these, but no object has such a class."""

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool

CELLS = ('RNNCell', 'LSTMCell', 'GRUCell')
MARK = '_gt_buffer'  # of a tensor that becomes a buffer: whether it belongs to the state


class _Kind(type):
    def __instancecheck__(cls, value):
        return cls._has(value)

    def __subclasscheck__(cls, other):
        return cls is other or cls._has_class(other)

    def __call__(cls, *args, **options):
        return cls._make(*args, **options)


class _Cells:
    """The rows of a class in C, which cells and networks share."""

    wants_cells = False

    @classmethod
    def _has_class(cls, other):
        if not issubclass(other, GTorch.RNNBase):
            return False
        return cls.wants_cells == any(issubclass(other, getattr(GTorch, name)) for name in CELLS)

    @classmethod
    def _has(cls, value):
        return cls._has_class(type(value))

    @classmethod
    def _make(cls, *_args, **_options):
        raise TypeError(f'nn.{cls.__name__} has no objects of its own: derive from GTorch.RNNBase, which C has')


class RNNBase(_Cells, metaclass=_Kind):
    """What RNN, LSTM and GRU are."""


class RNNCellBase(_Cells, metaclass=_Kind):
    """What RNNCell, LSTMCell and GRUCell are."""

    wants_cells = True


class Buffer(metaclass=_Kind):
    """A tensor that becomes a buffer of the module that it is assigned to: self.mean = nn.Buffer(torch.zeros(3))."""

    @classmethod
    def _has(cls, value):
        return isinstance(value, RawTensor) and MARK in value.__dict__

    @classmethod
    def _has_class(cls, _other):
        return False

    @classmethod
    def _make(cls, data=None, *, persistent=True):
        if data is None:
            from gi.repository import GTorch as namespace

            data = namespace.empty(0)
        if not isinstance(data, RawTensor):
            raise TypeError(f'Buffer(): data must be a tensor, not {type(data).__name__}')
        made = data.detach().requires_grad_(data.requires_grad)
        made.__dict__[MARK] = convert_bool(persistent)
        return made


def persistence(value):
    """Whether a buffer that is assigned belongs to the state; None for other values."""
    return value.__dict__.get(MARK) if isinstance(value, RawTensor) else None


class _Variables(type):
    def __instancecheck__(cls, value):
        return isinstance(value, RawTensor)


class Variable(metaclass=_Variables):
    """The former name of what a tensor has become: Variable(x, requires_grad=True) gives x with that setting."""

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if volatile is not None:
            raise NotImplementedError('Variable(): volatile is not supported: use no_grad()')
        if not isinstance(data, RawTensor):
            raise TypeError(f'Variable(): data must be a tensor, not {type(data).__name__}')
        return data.detach().requires_grad_(convert_bool(requires_grad))


NN = {kind.__name__: kind for kind in (Buffer, RNNBase, RNNCellBase)}
