/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/tensor/gtorch-dlpack-private.h>
#include <gtorch/gtorch.h>
#include <string.h>

#include "fuzz.h"

/* The input: flags of the optional members, the plain members, then shape and strides. */
typedef struct
{
  guint8 versioned, has_data, has_shape, has_strides;
  guint32 major;
  guint64 flags;
  gint32 device_type, n_dims;
  guint8 code, bits;
  guint16 lanes;
  guint32 padding;
  guint64 byte_offset;
} Members;

#define HEAD "\1\1\1\1\1\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0"
#define TAIL "\0\0\0\0\0\0\0\0\0\0\0\0"
#define S(n) n "\0\0\0\0\0\0\0"

const gchar fuzz_name[] = "dlpack";
const guint fuzz_weight = 1;
const FuzzSeed fuzz_seeds[] = {
  FUZZ_SEED (HEAD "\2\0\0\0\2\40\1\0" TAIL S ("\2") S ("\3") S ("\3") S ("\1")),
  FUZZ_SEED (HEAD "\1\0\0\0\5\200\1\0" TAIL S ("\4") S ("\2")),
  FUZZ_SEED (HEAD "\0\0\0\0\6\10\1\0" TAIL),
  { NULL, 0 },
};

static gdouble memory[512];
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

static void
look (GTorchTensor *tensor)
{
  const gint64 *shape, *strides;
  gsize n_dims, i, reach = 1;

  if (gtorch_tensor_get_numel (tensor) == 0)
    return;
  shape = gtorch_tensor_get_shape (tensor, &n_dims);
  strides = gtorch_tensor_get_strides (tensor, &n_dims);
  for (i = 0; i < n_dims; i++)
    reach += (shape[i] - 1) * strides[i];
  reach *= gtorch_dtype_get_size (gtorch_tensor_get_dtype (tensor));
  /* only the foreign library knows the size of the memory */
  if (gtorch_tensor_get_data_ptr (tensor) >= (gsize) memory
      && gtorch_tensor_get_data_ptr (tensor) - (gsize) memory <= sizeof memory
      && reach <= sizeof memory - (gtorch_tensor_get_data_ptr (tensor) - (gsize) memory))
    g_free (gtorch_tensor_to_string (tensor));
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  Members members = { 0 };
  gint64 dims[2 * 64] = { 0 };
  g_autofree gint64 *shape = NULL;
  g_autofree gint64 *strides = NULL;
  GTorchDLTensor tensor;
  GTorchDLManaged managed = { .deleter = delete_managed };
  GTorchDLManagedVersioned versioned = { .deleter = delete_versioned };
  g_autoptr (GTorchTensor) result = NULL;
  g_autoptr (GError) error = NULL;
  gsize n_dims;

  if (size > 0)
    memcpy (&members, data, MIN (size, sizeof members));
  if (size > sizeof members)
    memcpy (dims, data + sizeof members, MIN (size - sizeof members, sizeof dims));
  n_dims = CLAMP (members.n_dims, 0, 64);
  if (members.has_shape & 1)
    shape = g_memdup2 (dims, n_dims * sizeof (gint64));
  if (members.has_strides & 1)
    strides = g_memdup2 (dims + n_dims, n_dims * sizeof (gint64));
  tensor = (GTorchDLTensor){
    .data = members.has_data & 1 ? memory : NULL,
    .device = { members.device_type, 0 },
    .n_dims = members.n_dims,
    .dtype = { members.code, members.bits, members.lanes },
    .shape = shape,
    .strides = strides,
    .byte_offset = members.byte_offset,
  };
  n_deleted = 0;
  managed.tensor = tensor;
  versioned.tensor = tensor;
  versioned.major = members.major;
  versioned.flags = members.flags;
  result = gtorch_tensor_new_from_dlpack (members.versioned & 1 ? (gpointer) &versioned
                                                                : (gpointer) &managed,
                                          members.versioned & 1, &error);
  g_assert_true ((result == NULL) == (error != NULL));
  g_assert_cmpuint (n_deleted, ==, 0);
  if (result != NULL)
    {
      look (result);
      g_clear_object (&result);
      g_assert_cmpuint (n_deleted, ==, 1);
    }
  return 0;
}
