/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/tensor/gtorch-dlpack-private.h>
#include <string.h>

#include "test-device.h"

/* --- a foreign library --- */

static guint n_deleted;

static void
delete_versioned (GTorchDLManagedVersioned *self)
{
  n_deleted++;
}

static void
delete_managed (GTorchDLManaged *self)
{
  n_deleted++;
}

static gfloat memory[64];
static gint64 shape[] = { 2, 3 };
static gint64 strides[] = { 3, 1 };

static GTorchDLTensor
foreign_tensor (void)
{
  gsize i;

  n_deleted = 0;
  for (i = 0; i < G_N_ELEMENTS (memory); i++)
    memory[i] = i;
  return (GTorchDLTensor){
    .data = memory,
    .device = { GTORCH_DL_CPU, 0 },
    .n_dims = 2,
    .dtype = { 2, 32, 1 },
    .shape = shape,
    .strides = strides,
  };
}

static GTorchDLManagedVersioned
foreign (void)
{
  return (GTorchDLManagedVersioned){
    .major = 1, .minor = 0, .deleter = delete_versioned, .tensor = foreign_tensor ()
  };
}

static void
assert_refused (GTorchDLManagedVersioned *managed, GTorchError code, const gchar *text)
{
  GTorchDLManaged old = { .tensor = managed->tensor, .deleter = delete_managed };
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tensor_new_from_dlpack (managed, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, (gint) code);
  g_assert_cmpstr (error->message, ==, text);
  g_clear_error (&error);
  if (managed->major == 1)
    {
      g_assert_null (gtorch_tensor_new_from_dlpack (&old, FALSE, &error));
      g_assert_error (error, GTORCH_ERROR, (gint) code);
    }
  g_assert_cmpuint (n_deleted, ==, 0);
}

static gint
device_type (void)
{
  return test_device ()->backend->dlpack_type;
}

/* Skips what needs an export from a device that DLPack does not know, and is refused there. */
static gboolean
has_no_type (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;

  if (device_type () != 0)
    return FALSE;
  text = g_strdup_printf ("to_dlpack: DLPack has no number for the devices of %s",
                          gtorch_device_name (test_device ()));
  g_assert_null (gtorch_tensor_to_dlpack (x, TRUE, FALSE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, text);
  g_test_skip (error->message);
  return TRUE;
}

/* --- import --- */

static void
import_shares_memory (void)
{
  GTorchDLManagedVersioned managed = foreign ();
  g_autoptr (GError) error = NULL;
  GTorchTensor *x = gtorch_tensor_new_from_dlpack (&managed, TRUE, &error);
  g_autoptr (GTorchTensor) view = NULL;
  g_autofree gchar *text = NULL;

  g_assert_no_error (error);
  text = gtorch_tensor_to_string (x);
  g_assert_cmpstr (text, ==, "tensor([[0., 1., 2.],\n        [3., 4., 5.]])");
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (x, 2, NULL));
  g_assert_cmpfloat (memory[5], ==, 10);
  view = gtorch_tensor_select (x, 0, 1, NULL);
  g_object_unref (x);
  g_assert_cmpuint (n_deleted, ==, 0);
  g_clear_object (&view);
  g_assert_cmpuint (n_deleted, ==, 1);
}

static void
import_takes_the_old_form (void)
{
  GTorchDLManaged managed = { .tensor = foreign_tensor (), .deleter = delete_managed };
  g_autoptr (GTorchTensor) x = NULL;

  managed.tensor.strides = NULL;
  managed.tensor.byte_offset = 8;
  x = gtorch_tensor_new_from_dlpack (&managed, FALSE, NULL);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (x), ==, (gsize) (memory + 2));
  g_clear_object (&x);
  g_assert_cmpuint (n_deleted, ==, 1);
}

static void
import_takes_strides (void)
{
  GTorchDLManagedVersioned managed = foreign ();
  gint64 odd[] = { 1, 7 };
  g_autoptr (GTorchTensor) x = NULL;
  g_autofree gdouble *values = NULL;
  gsize n;

  managed.tensor.strides = odd;
  x = gtorch_tensor_new_from_dlpack (&managed, TRUE, NULL);
  values = gtorch_tensor_to_doubles (x, &n, NULL);
  g_assert_cmpfloat (values[5], ==, 15);
  g_assert_false (gtorch_tensor_is_contiguous (x));
}

static void
import_keeps_read_only (void)
{
  GTorchDLManagedVersioned managed = foreign ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = NULL;

  managed.flags = GTORCH_DL_READ_ONLY;
  x = gtorch_tensor_new_from_dlpack (&managed, TRUE, NULL);
  g_assert_null (gtorch_tensor_zero_inplace (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpfloat (memory[5], ==, 5);
}

static void
import_of_overlapping_elements_is_not_written_to (void)
{
  GTorchDLManagedVersioned managed = foreign ();
  gint64 overlapping[] = { 1, 1 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = NULL;

  managed.tensor.strides = overlapping;
  x = gtorch_tensor_new_from_dlpack (&managed, TRUE, NULL);
  g_assert_null (gtorch_tensor_zero_inplace (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
import_takes_empty_and_single (void)
{
  GTorchDLManagedVersioned managed = foreign ();
  gint64 none[] = { 0, 3 };
  g_autoptr (GTorchTensor) empty = NULL;
  g_autoptr (GTorchTensor) single = NULL;

  managed.tensor.shape = none;
  managed.tensor.data = NULL;
  empty = gtorch_tensor_new_from_dlpack (&managed, TRUE, NULL);
  g_assert_cmpint (gtorch_tensor_get_numel (empty), ==, 0);
  g_clear_object (&empty);
  managed = foreign ();
  managed.tensor.n_dims = 0;
  managed.tensor.shape = NULL;
  managed.tensor.strides = NULL;
  single = gtorch_tensor_new_from_dlpack (&managed, TRUE, NULL);
  g_assert_cmpfloat (gtorch_tensor_item_double (single, NULL), ==, 0);
}

static void
lying_structures_are_errors (void)
{
  GTorchDLManagedVersioned m;
  gint64 dims[20] = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tensor_new_from_dlpack (NULL, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);

  m = foreign ();
  m.major = 2;
  assert_refused (&m, GTORCH_ERROR_NOT_SUPPORTED,
                  "from_dlpack: version 2.0 of DLPack is not version 1");
  m = foreign ();
  m.tensor.n_dims = -1;
  assert_refused (&m, GTORCH_ERROR_FORMAT, "from_dlpack: -1 dimensions: there can be 0 to 16");
  m = foreign ();
  m.tensor.n_dims = G_MAXINT32;
  assert_refused (&m, GTORCH_ERROR_NOT_SUPPORTED,
                  "from_dlpack: 2147483647 dimensions: there can be 0 to 16");
  m = foreign ();
  m.tensor.shape = NULL;
  assert_refused (&m, GTORCH_ERROR_FORMAT, "from_dlpack: 2 dimensions without a shape");
  m = foreign ();
  dims[0] = -2;
  dims[1] = -3;
  m.tensor.shape = dims;
  assert_refused (&m, GTORCH_ERROR_FORMAT, "from_dlpack: shape [-2, -3] has a negative dimension");
  dims[0] = G_MAXINT64;
  dims[1] = 4;
  assert_refused (&m, GTORCH_ERROR_FORMAT,
                  "from_dlpack: the size of shape [9223372036854775807, 4] overflows 64 bits");
  m = foreign ();
  m.tensor.data = NULL;
  assert_refused (&m, GTORCH_ERROR_FORMAT, "from_dlpack: shape [2, 3] without memory");
  m = foreign ();
  m.tensor.byte_offset = G_MAXUINT64;
  assert_refused (&m, GTORCH_ERROR_FORMAT,
                  "from_dlpack: byte offset 18446744073709551615 and 24 bytes reach beyond the "
                  "address space");
  m = foreign ();
  m.tensor.byte_offset = G_GUINT64_CONSTANT (1) << 63;
  assert_refused (&m, GTORCH_ERROR_FORMAT,
                  "from_dlpack: byte offset 9223372036854775808 and 24 bytes reach beyond the "
                  "address space");
  m = foreign ();
  m.tensor.byte_offset = G_MAXINT64 - 23;
  assert_refused (&m, GTORCH_ERROR_FORMAT,
                  "from_dlpack: byte offset 9223372036854775784 and 24 bytes reach beyond the "
                  "address space");
  m = foreign ();
  m.tensor.byte_offset = 1;
  assert_refused (&m, GTORCH_ERROR_NOT_SUPPORTED,
                  "from_dlpack: the memory is not aligned for float32");
  m = foreign ();
  dims[0] = G_MAXINT64 / 4;
  dims[1] = 1;
  m.tensor.strides = dims;
  assert_refused (&m, GTORCH_ERROR_FORMAT,
                  "from_dlpack: stride 2305843009213693951 of dim 0 with size 2 reaches beyond 64 "
                  "bits");
  dims[0] = -3;
  assert_refused (&m, GTORCH_ERROR_NOT_SUPPORTED, "from_dlpack: stride -3 of dim 0 is negative");
  m = foreign ();
  m.tensor.dtype.lanes = 4;
  assert_refused (&m, GTORCH_ERROR_NOT_SUPPORTED,
                  "from_dlpack: elements of 4 lanes: only 1 is possible");
  m = foreign ();
  m.tensor.dtype.bits = 7;
  assert_refused (&m, GTORCH_ERROR_NOT_SUPPORTED,
                  "from_dlpack: there is no dtype for elements of code 2 with 7 bits");
  m = foreign ();
  m.tensor.dtype.code = 200;
  assert_refused (&m, GTORCH_ERROR_NOT_SUPPORTED,
                  "from_dlpack: there is no dtype for elements of code 200 with 32 bits");
  m = foreign ();
  m.tensor.device.device_type = 4;
  assert_refused (&m, GTORCH_ERROR_NOT_SUPPORTED,
                  "from_dlpack: memory on a device of type 4 (number 0) cannot be used");
  m = foreign ();
  m.tensor.device.device_type = -7;
  assert_refused (&m, GTORCH_ERROR_FORMAT,
                  "from_dlpack: there is no type -7 of devices (number 0)");
}

/* --- export --- */

static void
export_shares_memory (void)
{
  GTorchTensor *x;
  g_autoptr (GTorchTensor) part = NULL;
  g_autoptr (GError) error = NULL;
  GTorchDLManagedVersioned *managed;
  GTorchDLManaged *old;

  if (has_no_type ())
    return;
  x = gtorch_arange (0, 6, 1, GTORCH_DTYPE_INT16, NULL, NULL);
  part = gtorch_tensor_slice (x, 0, 1, 6, 2, NULL);
  managed = gtorch_tensor_to_dlpack (part, TRUE, FALSE, NULL, &error);
  g_assert_no_error (error);
  old = gtorch_tensor_to_dlpack (part, FALSE, FALSE, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (managed->major, ==, 1);
  g_assert_cmpuint (managed->flags, ==, 0);
  g_assert_cmpint (managed->tensor.n_dims, ==, 1);
  g_assert_cmpint (managed->tensor.shape[0], ==, 3);
  g_assert_cmpint (managed->tensor.strides[0], ==, 2);
  g_assert_cmpuint (managed->tensor.dtype.code, ==, 0);
  g_assert_cmpuint (managed->tensor.dtype.bits, ==, 16);
  g_assert_cmpint (managed->tensor.device.device_type, ==, device_type ());
  g_assert_true (old->tensor.data == managed->tensor.data);
  g_assert_cmpuint ((gsize) old->tensor.data, ==, gtorch_tensor_get_data_ptr (x) + 2);
  gtorch_tensor_release (part);
  gtorch_tensor_release (x);
  g_object_unref (x);
  if (device_type () == GTORCH_DL_CPU)
    g_assert_cmpint (((gint16 *) managed->tensor.data)[4], ==, 5);
  managed->deleter (managed);
  gtorch_dlpack_delete ((gsize) old, FALSE);
}

static void
export_copies_when_asked (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_BOOL, NULL, NULL);
  GTorchDLManagedVersioned *managed;

  if (has_no_type ())
    return;
  managed = gtorch_tensor_to_dlpack (x, TRUE, TRUE, NULL, NULL);
  g_assert_cmpuint (managed->flags, ==, GTORCH_DL_IS_COPIED);
  g_assert_cmpuint (managed->tensor.dtype.code, ==, 6);
  g_assert_cmpuint ((gsize) managed->tensor.data, !=, gtorch_tensor_get_data_ptr (x));
  managed->deleter (managed);
}

static void
every_dtype_round_trips (void)
{
  guint dtype, versioned;

  if (test_is_elsewhere ("memory of GPUs is not taken from other libraries"))
    return;
  for (dtype = GTORCH_DTYPE_FLOAT32; dtype <= GTORCH_DTYPE_COMPLEX128; dtype++)
    for (versioned = 0; versioned < 2; versioned++)
      {
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 1, 3), dtype, NULL, &error);
        g_autoptr (GTorchTensor) y =
            gtorch_tensor_import_dlpack (gtorch_tensor_export_dlpack (x, versioned, FALSE, NULL,
                                                                      &error),
                                         versioned, &error);
        g_autofree gchar *a = NULL;
        g_autofree gchar *b = NULL;

        g_assert_no_error (error);
        g_assert_cmpint (gtorch_tensor_get_dtype (y), ==, dtype);
        g_assert_cmpuint (gtorch_tensor_get_data_ptr (x), ==, gtorch_tensor_get_data_ptr (y));
        g_clear_pointer (&x, g_object_unref);
        x = gtorch_ones (GTORCH_SHAPE (2, 1, 3), dtype, NULL, &error);
        a = gtorch_tensor_to_string (x);
        b = gtorch_tensor_to_string (y);
        g_assert_cmpstr (a, ==, b);
      }
}

static void
export_refuses_inexpressible_tensors (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GBytes) bytes = g_bytes_new ("abcd", 4);
  g_autoptr (GTorchTensor) read_only =
      gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_UINT8, GTORCH_SHAPE (4), NULL);
  GTorchDLManagedVersioned *managed;
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tensor_to_dlpack (read_only, FALSE, FALSE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  managed = gtorch_tensor_to_dlpack (read_only, TRUE, FALSE, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (managed->flags, ==, GTORCH_DL_READ_ONLY);
  managed->deleter (managed);

  if (has_no_type ())
    return;
  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  g_assert_cmpuint (gtorch_tensor_export_dlpack (x, TRUE, FALSE, NULL, &error), ==, 0);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_clear_error (&error);
  gtorch_tensor_release (x);
  g_assert_null (gtorch_tensor_to_dlpack (x, TRUE, FALSE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
}

static void
capsules_have_names (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  gint type = 0, id = 7;

  g_assert_cmpstr (gtorch_dlpack_get_capsule_name (FALSE, FALSE), ==, "dltensor");
  g_assert_cmpstr (gtorch_dlpack_get_capsule_name (FALSE, TRUE), ==, "used_dltensor");
  g_assert_cmpstr (gtorch_dlpack_get_capsule_name (TRUE, FALSE), ==, "dltensor_versioned");
  g_assert_cmpstr (gtorch_dlpack_get_capsule_name (TRUE, TRUE), ==, "used_dltensor_versioned");
  gtorch_tensor_get_dlpack_device (x, &type, &id);
  g_assert_cmpint (type, ==, device_type ());
  g_assert_cmpint (id, ==, 0);
}

static void
what_comes_back_shares_the_storage (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2), 0, test_device (), NULL);
  g_autoptr (GTorchTensor) other = gtorch_ones (GTORCH_SHAPE (2), 0, test_device (), NULL);
  g_autoptr (GTorchTensor) back = NULL;
  g_autoptr (GTorchTensor) copy = NULL;

  if (test_is_elsewhere ("exported"))
    return;
  back = gtorch_tensor_new_from_dlpack (gtorch_tensor_to_dlpack (x, TRUE, FALSE, NULL, NULL), TRUE,
                                        NULL);
  copy = gtorch_tensor_new_from_dlpack (gtorch_tensor_to_dlpack (x, TRUE, TRUE, NULL, NULL), TRUE,
                                        NULL);
  g_assert_true (gtorch_tensor_shares_storage (x, back));
  g_assert_true (gtorch_tensor_shares_storage (back, x));
  g_assert_false (gtorch_tensor_shares_storage (x, copy));
  g_assert_false (gtorch_tensor_shares_storage (x, other));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(fact) g_test_add_func ("/GTorch/tensor-dlpack/" #fact, fact)
  ADD (import_shares_memory);
  ADD (import_takes_the_old_form);
  ADD (import_takes_strides);
  ADD (what_comes_back_shares_the_storage);
  ADD (import_keeps_read_only);
  ADD (import_of_overlapping_elements_is_not_written_to);
  ADD (import_takes_empty_and_single);
  ADD (lying_structures_are_errors);
  ADD (export_shares_memory);
  ADD (export_copies_when_asked);
  ADD (every_dtype_round_trips);
  ADD (export_refuses_inexpressible_tensors);
  ADD (capsules_have_names);
  return g_test_run ();
}
