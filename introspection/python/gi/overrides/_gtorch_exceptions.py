# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors of the library as exceptions of PyTorch's kinds.

PyGObject raises each GError as GLib.Error, which is a RuntimeError. An error of the library's domain is in addition an
exception of the kind that PyTorch raises: IndexError for an index out of range, ValueError for an argument that the
function forbids, NotImplementedError for what a build, a device or a dtype lacks, torch.OutOfMemoryError,
torch.AcceleratorError for errors of CUDA, and torch.linalg.LinAlgError. The others are RuntimeError in PyTorch, too.
Its text is the message alone. Errors of files, those of GIO's domain, are in addition what Python's own functions
raise: FileNotFoundError and its like.
"""

import errno
import functools
from contextlib import contextmanager

from gi.repository import Gio, GLib

from gi.overrides._gtorch_convert import GTorch

Failure = GLib.Error
DOMAIN = GLib.quark_to_string(GTorch.error_quark())
HERE = 'gtorch'


class LibraryError(Failure):
    """An error of the library; its code is one of GTorch.Error."""

    __module__ = HERE

    def __str__(self):
        return self.message

    def __reduce__(self):
        return Failure, (self.message, self.domain, self.code)


class OutOfMemoryError(LibraryError):
    """The memory could not be had."""

    __module__ = HERE


class AcceleratorError(LibraryError):
    """The CUDA driver or one of its libraries reported an error."""

    __module__ = HERE


def _kind(name, *others, doc):
    return type(name, (LibraryError, *others), {'__module__': HERE, '__doc__': doc})


CODES = GTorch.Error
KINDS = {
    int(CODES.INDEX): _kind('IndexError', IndexError, doc='An index or a dimension is out of range.'),
    int(CODES.INVALID): _kind('ValueError', ValueError, doc='An argument has a value that the function forbids.'),
    int(CODES.NOT_SUPPORTED): _kind('NotImplementedError', NotImplementedError, doc='This build or device lacks it.'),
    int(CODES.OUT_OF_MEMORY): OutOfMemoryError,
    int(CODES.CUDA): AcceleratorError,
    int(CODES.DEVICE_LOST): AcceleratorError,
}


class FileError(Failure):
    """An error of a file or a folder, which is an OSError as well."""

    __module__ = HERE

    def __str__(self):
        return self.message

    def __reduce__(self):
        return Failure, (self.message, self.domain, self.code)


def _file_kind(builtin, number):
    """The class of errors that Python raises as @builtin, with the number of the system's error."""
    doc = f'An error of a file that Python raises as {builtin.__name__}.'
    parts = {'errno': number, 'strerror': property(lambda self: self.message)}
    return type(builtin.__name__, (FileError, builtin), {'__module__': HERE, '__doc__': doc, **parts})


FILES = GLib.quark_to_string(Gio.io_error_quark())
FILE_KINDS = {
    int(Gio.IOErrorEnum.NOT_FOUND): _file_kind(FileNotFoundError, errno.ENOENT),
    int(Gio.IOErrorEnum.EXISTS): _file_kind(FileExistsError, errno.EEXIST),
    int(Gio.IOErrorEnum.IS_DIRECTORY): _file_kind(IsADirectoryError, errno.EISDIR),
    int(Gio.IOErrorEnum.NOT_DIRECTORY): _file_kind(NotADirectoryError, errno.ENOTDIR),
    int(Gio.IOErrorEnum.PERMISSION_DENIED): _file_kind(PermissionError, errno.EACCES),
}


# Operations and functions whose errors about shapes are ValueErrors in PyTorch.
OF_SHAPES = (
    'batch_norm', 'binary_cross_entropy', 'binary_cross_entropy_with_logits', 'cross_entropy', 'init', 'init_dirac',
    'init_eye', 'init_orthogonal', 'init_sparse', 'instance_norm', 'item', 'nll_loss',
)  # fmt: skip
# Operations of groups of processes. Their errors may come later, behind the name of what has waited for them.
OF_GROUPS = frozenset((
    'all_gather', 'all_gather_coalesced', 'all_gather_into_tensor', 'all_gather_object', 'all_gather_variant',
    'all_reduce', 'all_reduce_coalesced', 'all_reduce_premul', 'all_to_all', 'all_to_all_single', 'barrier',
    'batch_isend_irecv', 'broadcast', 'broadcast_coalesced', 'broadcast_object_list', 'broadcast_variant',
    'distributed_module', 'gather', 'gather_object', 'gather_variant', 'grad_bucket_average', 'irecv', 'isend',
    'module_shards', 'module_shards_gather', 'monitored_barrier', 'mpi', 'nccl', 'parallelize_columns',
    'parallelize_gather', 'parallelize_rows', 'power_sgd', 'process_group', 'process_group_abort',
    'process_group_bind_device', 'process_group_new_part', 'recv', 'recv_any', 'recv_object_list', 'recv_variant',
    'reduce', 'reduce_scatter', 'reduce_scatter_coalesced', 'reduce_scatter_tensor', 'reduce_scatter_tensor_premul',
    'safetensors_index', 'scatter', 'scatter_object_list', 'scatter_variant', 'send', 'send_object_list',
    'send_variant', 'sharded_optimizer', 'sync_batch_norm',
))  # fmt: skip
_of_groups = []  # the class of their errors, once torch.distributed is imported
TEXTS = 'gtorch-1'  # the domain of the translations


class NumberTooLargeError(OverflowError, ValueError):
    """A number that does not fit where it is given: in PyTorch a ValueError, in Python's arrays an OverflowError."""

    __module__ = HERE


class LinAlgError(LibraryError, ValueError):
    """A matrix is singular or not positive-definite, or an algorithm did not converge."""

    __module__ = HERE


def _says(message, *texts):
    """Tells whether the message, behind its first colon, is one of the library's texts."""
    said = message.partition(': ')[2]
    return any(said.startswith(GLib.dgettext(TEXTS, text).partition('%')[0]) for text in texts)


def _is_of_group(message):
    """Tells whether an operation of a group has failed."""
    return bool(_of_groups) and not OF_GROUPS.isdisjoint(message.split(': ')[:-1])


def _refined(code, message):
    """The kind of an error whose code stands for several of PyTorch's."""
    if code == CODES.FAILED and _is_of_group(message):
        return _kind_of(_of_groups[0])
    if code == CODES.SHAPE and message.partition(':')[0] in OF_SHAPES:
        return _derived[ValueError]
    if code == CODES.DTYPE and _says(message, 'not defined for dtype %s'):
        return _derived[NotImplementedError]
    if code == CODES.INVALID and _says(message, 'the matrix is %s', 'the matrix at %s of the batch is %s'):
        return LinAlgError
    return KINDS.get(code, LibraryError)


def _of_kind(cls, message='', domain='', code=0):
    """Chooses the class of an error: PyGObject itself makes GLib.Error of every GError."""
    if cls is Failure and domain == DOMAIN:
        cls = _refined(code, message)
    elif cls is Failure and domain == FILES:
        late = code == Gio.IOErrorEnum.TIMED_OUT and _is_of_group(message)
        cls = _kind_of(_of_groups[0]) if late else FILE_KINDS.get(code, cls)
    return (OSError if issubclass(cls, OSError) else RuntimeError).__new__(cls, message)


_derived = {kind.__bases__[-1]: kind for kind in KINDS.values() if len(kind.__bases__) > 1}

Failure.__new__ = staticmethod(_of_kind)


def _kind_of(builtin):
    """The class of errors that PyTorch raises as @builtin."""
    if builtin not in _derived:
        _derived[builtin] = _kind(builtin.__name__, builtin, doc=f'An error that PyTorch raises as {builtin.__name__}.')
    return _derived[builtin]


def set_of_groups(builtin):
    """Lets what fails or times out in an operation of a group be of this kind, wherever that is noticed."""
    _of_groups[:] = [builtin]


def of_kind(builtin, error, message=None):
    """The error, where PyTorch raises an exception of another kind than its code stands for."""
    found = _kind_of(builtin)(message or error.message)
    found.message, found.domain, found.code = message or error.message, error.domain, error.code
    return found


def made(builtin, message, code):
    """An error of Python's part of the library that is an exception of this kind."""
    return of_kind(builtin, Failure(message, DOMAIN, int(code)))


def settled(function):
    """Wraps a function that Python itself calls, such as __getitem__(). PyGObject says GLib.Error of all errors, and up
    to Python 3.11 a loop finds the class of the object only if the exception has come by here."""

    @functools.wraps(function)
    def call(*args, **options):
        try:
            return function(*args, **options)
        except Failure:
            raise

    return call


@contextmanager
def lacking(builtin):
    """A block in which an error about something that does not exist is of this kind as well."""
    try:
        yield
    except Failure as error:
        if error.matches(GTorch.error_quark(), CODES.NOT_FOUND):
            raise of_kind(builtin, error) from None
        raise


def install(export, cuda):
    for kind in (OutOfMemoryError, AcceleratorError):
        export(kind.__name__, kind)
    export('LinAlgError', LinAlgError)
    cuda.OutOfMemoryError, cuda.CudaError = OutOfMemoryError, AcceleratorError
