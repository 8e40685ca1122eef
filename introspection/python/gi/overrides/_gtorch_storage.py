# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The memory of tensors as PyTorch's storages: objects that tell where it is and how much, and are equal if tensors
share it."""

from gi.overrides._gtorch_convert import DType, RawTensor, cuda_device
from gi.overrides._gtorch_tensor import whole_memory


class UntypedStorage:
    """The bytes of the memory of a tensor."""

    def __init__(self, tensor):
        if not isinstance(tensor, RawTensor):
            raise TypeError('a storage is made by tensor.untyped_storage() alone')
        # A view would be a use of the memory, for gradients too: only its place is needed.
        self._tensor = tensor.detach()

    @property
    def _elements(self):
        return whole_memory(self._tensor)

    device = property(lambda self: self._tensor.device)
    is_cuda = property(lambda self: self._tensor.is_cuda)

    def data_ptr(self):
        """The address of the first byte; 0 without bytes."""
        tensor = self._tensor
        if tensor.numel() == 0:
            return tensor.data_ptr()
        return tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize

    def nbytes(self):
        tensor = self._tensor
        return 0 if tensor.numel() == 0 else self._elements.numel() * tensor.itemsize

    def size(self):
        return self.nbytes()

    __len__ = size

    def element_size(self):
        return 1

    def get_device(self):
        return self._tensor.get_device()

    def tolist(self):
        """The bytes as numbers."""
        if self.nbytes() == 0:
            return []
        return list(self._elements.cpu().contiguous().get_bytes().get_data())

    def clone(self):
        return type(self)(self._elements.clone())

    def cpu(self):
        return self if self.device.type == 'cpu' else type(self)(self._elements.cpu())

    def cuda(self, device=None):
        return type(self)(self._elements.to(device=cuda_device(device)))

    def __eq__(self, other):
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return (self.device, self.data_ptr(), self.nbytes()) == (other.device, other.data_ptr(), other.nbytes())

    def __hash__(self):
        return hash(self.data_ptr())

    def __repr__(self):
        return f'<the storage of {self.nbytes()} bytes on {self.device}>'


class TypedStorage(UntypedStorage):
    """The elements of the memory of a tensor."""

    dtype = property(lambda self: self._tensor.dtype)

    def size(self):
        return self.nbytes() // self._tensor.itemsize

    __len__ = size

    def element_size(self):
        return self._tensor.itemsize

    def tolist(self):
        return self._elements.tolist() if self.nbytes() else []

    def __getitem__(self, index):
        return self.tolist()[index]

    def __iter__(self):
        return iter(self.tolist())

    def untyped(self):
        return UntypedStorage(self._tensor)

    def __repr__(self):
        return f'<the storage of {self.size()} elements of {DType.get_name(self.dtype)} on {self.device}>'


def moved(tensor, found, name):
    """The tensor of the storage that a function has given for the one of @tensor; None if it gave none."""
    if found is None:
        return None
    if isinstance(found, UntypedStorage):
        found = found._tensor
    if not isinstance(found, RawTensor) or found.dtype != tensor.dtype or found.numel() != tensor.numel():
        raise TypeError(f'{name} gave {type(found).__name__}, not the storage, on whatever device, nor None')
    return found


def install(export):
    for kind in (UntypedStorage, TypedStorage):
        export(kind.__name__, kind)
