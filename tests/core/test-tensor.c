/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The object around an impl: identity, lifetime, and recycling of plain objects. */

#include "config.h"

#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

static GTorchTensor *
new_tensor (void)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

static void
one_impl_has_one_object (void)
{
  g_autoptr (GTorchTensor) a = new_tensor ();
  g_autoptr (GTorchTensor) b = gtorch_tensor_wrap (gtorch_impl_ref (a->impl));

  g_assert_true (a == b);
  g_assert_cmpuint (G_OBJECT (a)->ref_count, ==, 2);
}

static void
an_impl_outlives_its_object (void)
{
  GTorchTensor *tensor = new_tensor ();
  GTorchImpl *impl = gtorch_impl_ref (tensor->impl);

  g_object_unref (tensor);
  g_assert_null (impl->object);
  tensor = gtorch_tensor_wrap (impl);
  g_assert_true (tensor->impl == impl);
  g_object_unref (tensor);
}

static void
notified (GTorchTensor *tensor, GParamSpec *pspec, gpointer user_data)
{
  (*(guint *) user_data)++;
}

static void
destroyed (gpointer data)
{
  (*(guint *) data)++;
}

static void
gone (gpointer data, GObject *where)
{
  (*(guint *) data)++;
}

static void
drop_by_gobject (GTorchTensor *tensor)
{
  g_object_unref (tensor);
}

static void
drop_by_turns (GTorchTensor *tensor)
{
  static __thread guint n;

  (n++ % 3 == 0 ? drop_by_gobject : gtorch_tensor_unref) (tensor);
}

typedef void (*Drop) (GTorchTensor *tensor);

static const Drop drops[] = { drop_by_gobject, gtorch_tensor_unref, drop_by_turns };

/* Everything that was attached to an object must be dropped with it and never appear on a later one. */
static void
attachments_end_with_the_object (gconstpointer data)
{
  const Drop drop = *(const Drop *) data;
  guint n_notified = 0, n_destroyed = 0, n_gone = 0, i;
  GTorchTensor *tensor = new_tensor ();

  g_signal_connect_data (tensor, "notify::dtype", G_CALLBACK (notified), &n_notified, NULL, 0);
  drop (tensor);

  tensor = new_tensor ();
  g_object_set_data_full (G_OBJECT (tensor), "key", &n_destroyed, destroyed);
  drop (tensor);
  g_assert_cmpuint (n_destroyed, ==, 1);

  tensor = new_tensor ();
  g_object_weak_ref (G_OBJECT (tensor), gone, &n_gone);
  drop (tensor);
  g_assert_cmpuint (n_gone, ==, 1);

  tensor = new_tensor ();
  g_object_freeze_notify (G_OBJECT (tensor));
  drop (tensor);

  tensor = new_tensor ();
  g_object_force_floating (G_OBJECT (tensor));
  drop (tensor);

  for (i = 0; i < 100; i++)
    {
      guint n = 0;

      tensor = new_tensor ();
      g_assert_null (g_object_get_data (G_OBJECT (tensor), "key"));
      g_assert_false (g_object_is_floating (tensor));
      g_object_notify (G_OBJECT (tensor), "dtype");
      g_assert_cmpuint (n_notified, ==, 0);
      g_signal_connect (tensor, "notify::numel", G_CALLBACK (notified), &n);
      g_object_notify (G_OBJECT (tensor), "numel");
      g_assert_cmpuint (n, ==, 1);
      g_assert_cmpuint (G_OBJECT (tensor)->ref_count, ==, 1);
      drop (tensor);
    }
  g_assert_cmpuint (n_gone, ==, 1);
}

static void
weak_pointers_are_cleared (gconstpointer data)
{
  const Drop drop = *(const Drop *) data;
  GTorchTensor *tensor = new_tensor ();
  GWeakRef weak;

  g_weak_ref_init (&weak, tensor);
  g_object_add_weak_pointer (G_OBJECT (tensor), (gpointer *) &tensor);
  drop (tensor);
  g_assert_null (tensor);
  g_assert_null (g_weak_ref_get (&weak));
  g_weak_ref_clear (&weak);
}

static void
toggled (gpointer data, GObject *object, gboolean is_last)
{
  (*(guint *) data) += is_last;
}

/* Bindings hold objects in these ways. */
static void
other_references_keep_it (gconstpointer data)
{
  const Drop drop = *(const Drop *) data;
  GTorchTensor *tensor = new_tensor ();
  GTorchImpl *impl = tensor->impl;
  guint n_toggled = 0;

  g_object_ref (tensor);
  drop (tensor);
  g_assert_true (tensor->impl == impl && impl->object == tensor);
  g_object_add_toggle_ref (G_OBJECT (tensor), toggled, &n_toggled);
  drop (tensor);
  g_assert_cmpuint (n_toggled, ==, 1);
  g_assert_true (tensor->impl == impl && impl->object == tensor);
  g_object_remove_toggle_ref (G_OBJECT (tensor), toggled, &n_toggled);
}

static void
a_type_of_a_program_is_finalized (gconstpointer data)
{
  static const GTypeInfo info = { .class_size = sizeof (GTorchTensorClass), .instance_size = 256 };
  const Drop drop = *(const Drop *) data;
  guint n_gone = 0;
  GType type = g_type_from_name ("TestTensor");
  GTorchTensor *tensor;
  GTypeQuery query;

  g_type_query (GTORCH_TYPE_TENSOR, &query);
  g_assert_cmpuint (query.instance_size, <=, info.instance_size);
  if (type == 0)
    type = g_type_register_static (GTORCH_TYPE_TENSOR, "TestTensor", &info, 0);
  tensor = g_object_new (type, NULL);
  g_object_set_data_full (G_OBJECT (tensor), "key", &n_gone, destroyed);
  drop (tensor);
  g_assert_cmpuint (n_gone, ==, 1);
  tensor = g_object_new (type, NULL);
  g_assert_cmpint (gtorch_tensor_get_numel (tensor), ==, 0); /* it has an impl now */
  drop (tensor);
  tensor = new_tensor ();
  g_assert_true (G_OBJECT_TYPE (tensor) == GTORCH_TYPE_TENSOR);
  drop (tensor);
}

static void
many_alive_at_once (gconstpointer data)
{
  const Drop drop = *(const Drop *) data;
  GTorchTensor *tensors[200];
  guint round, i;

  for (round = 0; round < 3; round++)
    {
      for (i = 0; i < G_N_ELEMENTS (tensors); i++)
        tensors[i] = new_tensor ();
      for (i = 1; i < G_N_ELEMENTS (tensors); i++)
        g_assert_true (tensors[i] != tensors[i - 1]);
      for (i = 0; i < G_N_ELEMENTS (tensors); i++)
        drop (tensors[i]);
    }
}

static gpointer
churn (gpointer data)
{
  guint i;

  for (i = 0; i < 20000; i++)
    {
      GTorchTensor *shared = gtorch_tensor_wrap (gtorch_impl_ref (data));
      GTorchTensor *own = new_tensor ();

      g_assert_true (shared->impl == data);
      g_assert_true (own->impl != data);
      drops[i % 3](shared);
      drops[i % 2](own);
    }
  return NULL;
}

static void
threads_share_an_impl (void)
{
  g_autoptr (GTorchTensor) tensor = new_tensor ();
  GTorchImpl *impl = gtorch_impl_ref (tensor->impl);
  GThread *threads[3];
  guint i;

  g_clear_object (&tensor);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("churn", churn, impl);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_cmpint (impl->ref_count, ==, 1);
  gtorch_impl_unref (impl);
}

typedef struct
{
  GTorchImpl *impl;
  GTorchTensor *found;
  gint round; /* accessed atomically */
} Meeting;

#define ROUNDS 20000

static gpointer
ask (gpointer data)
{
  Meeting *meeting = data;
  gint i;

  for (i = 1; i <= ROUNDS; i++)
    {
      while (g_atomic_int_get (&meeting->round) != 2 * i - 1)
        g_thread_yield ();
      meeting->found = gtorch_tensor_wrap (meeting->impl);
      g_atomic_int_set (&meeting->round, 2 * i);
    }
  return NULL;
}

/* One thread drops the last reference to the object while another gets the object of the same impl: it
 * gets that one or a new one, in either case with its own reference. */
static void
the_last_unref_races_with_a_lookup (gconstpointer data)
{
  const Drop drop = *(const Drop *) data;
  Meeting meeting = { NULL };
  GThread *thread = g_thread_new ("ask", ask, &meeting);
  gint i;

  for (i = 1; i <= ROUNDS; i++)
    {
      GTorchTensor *tensor = new_tensor (), *other;
      GTorchImpl *impl = tensor->impl;
      gint wait = i % 50;

      meeting.impl = gtorch_impl_ref (impl);
      g_atomic_int_set (&meeting.round, 2 * i - 1);
      while (wait-- > 0)
        g_atomic_int_get (&meeting.round);
      drop (tensor);
      other = new_tensor ();
      while (g_atomic_int_get (&meeting.round) != 2 * i)
        g_thread_yield ();
      g_assert_true (meeting.found->impl == impl);
      g_assert_true (meeting.found != other);
      drop (meeting.found);
      drop (other);
    }
  g_thread_join (thread);
}

static void
a_bare_object_is_an_empty_tensor (void)
{
  g_autoptr (GTorchTensor) tensor = g_object_new (GTORCH_TYPE_TENSOR, NULL);
  g_autoptr (GTorchTensor) sum = gtorch_tensor_add_scalar (tensor, 1, 1, NULL);

  g_assert_cmpint (gtorch_tensor_get_numel (tensor), ==, 0);
  g_assert_cmpint (gtorch_tensor_get_numel (sum), ==, 0);
}

static void
geometry_can_be_read (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor = new_tensor ();
  const gint64 *shape, *strides;
  gsize n_dims;

  shape = gtorch_tensor_get_shape (tensor, &n_dims);
  g_assert_cmpuint (n_dims, ==, 2);
  g_assert_cmpint (shape[0], ==, 2);
  g_assert_cmpint (shape[1], ==, 3);
  strides = gtorch_tensor_get_strides (tensor, &n_dims);
  g_assert_cmpint (strides[0], ==, 3);
  g_assert_cmpint (strides[1], ==, 1);
  g_assert_cmpint (gtorch_tensor_get_size (tensor, -1, NULL), ==, 3);
  g_assert_cmpint (gtorch_tensor_get_size (tensor, 2, &error), ==, -1);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
}

static void
impossible_shapes_are_errors (void)
{
  g_autoptr (GError) error = NULL;
  gint64 many[40] = { 0 };

  g_assert_null (gtorch_zeros (GTORCH_SHAPE (-1), GTORCH_DTYPE_FLOAT32, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_null (gtorch_zeros (GTORCH_SHAPE (G_MAXINT64, 2), GTORCH_DTYPE_FLOAT32, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_null (gtorch_zeros (many, G_N_ELEMENTS (many), GTORCH_DTYPE_FLOAT32, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_null (
      gtorch_zeros (GTORCH_SHAPE (G_GINT64_CONSTANT (1) << 50), GTORCH_DTYPE_UINT8, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
}

#define ADD_DROP(name)                                                                 \
  do                                                                                   \
    {                                                                                  \
      g_autofree gchar *path = g_strdup_printf ("/GTorch/tensor/" #name "/%s", by[i]); \
                                                                                       \
      g_test_add_data_func (path, &drops[i], name);                                    \
    }                                                                                  \
  while (0)

int
main (int argc, char *argv[])
{
  static const gchar *const by[] = { "gobject", "unref", "turns" };
  guint i;

  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/tensor/one_impl_has_one_object", one_impl_has_one_object);
  g_test_add_func ("/GTorch/tensor/an_impl_outlives_its_object", an_impl_outlives_its_object);
  for (i = 0; i < G_N_ELEMENTS (drops); i++)
    {
      ADD_DROP (attachments_end_with_the_object);
      ADD_DROP (weak_pointers_are_cleared);
      ADD_DROP (other_references_keep_it);
      ADD_DROP (a_type_of_a_program_is_finalized);
      ADD_DROP (many_alive_at_once);
      ADD_DROP (the_last_unref_races_with_a_lookup);
    }
  g_test_add_func ("/GTorch/tensor/threads_share_an_impl", threads_share_an_impl);
  g_test_add_func ("/GTorch/tensor/a_bare_object_is_an_empty_tensor",
                   a_bare_object_is_an_empty_tensor);
  g_test_add_func ("/GTorch/tensor/geometry_can_be_read", geometry_can_be_read);
  g_test_add_func ("/GTorch/tensor/impossible_shapes_are_errors", impossible_shapes_are_errors);
  return g_test_run ();
}
