/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Images are written and read again; files that lie are made of those. */

#include "config.h"

#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <string.h>

/* FALSE, with the test skipped, where GdkPixbuf or one of its formats is not installed. */
static gboolean
encode (GTorchTensor *image, const gchar *format, GBytes **bytes)
{
  g_autoptr (GError) error = NULL;

  *bytes = gtorch_image_encode (image, format, 100, &error);
  if (*bytes == NULL
      && (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED)
          || g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_FAILED)))
    {
      g_test_skip (error->message);
      return FALSE;
    }
  g_assert_no_error (error);
  return TRUE;
}

/* [n, 3, 5], 0, 1, 2, … times a factor */
static GTorchTensor *
numbers (gint64 n, gint64 factor)
{
  const gint64 shape[] = { n, 3, 5 };
  gint64 values[60];

  for (gint64 i = 0; i < n * 15; i++)
    values[i] = i * factor;
  return gtorch_tensor_new_from_ints (values, n * 15, shape, 3, GTORCH_DTYPE_UINT8, NULL, NULL);
}

static GTorchTensor *
load (GBytes *bytes, GTorchImageMode mode, gboolean apply_orientation, GError **error)
{
  return gtorch_image_load_bytes (bytes, mode, apply_orientation, 0, NULL, error);
}

static void
assert_equal (GTorchTensor *a, GTorchTensor *b)
{
  g_autofree gchar *one = gtorch_tensor_to_string (a);
  g_autofree gchar *other = gtorch_tensor_to_string (b);

  g_assert_cmpstr (one, ==, other);
}

static void
test_png_comes_back (void)
{
  static const gint64 channels[] = { 3, 4, 1 };

  for (guint i = 0; i < G_N_ELEMENTS (channels); i++)
    {
      g_autoptr (GTorchTensor) image = numbers (channels[i], 4);
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (GTorchTensor) again = NULL;
      g_autoptr (GError) error = NULL;

      if (!encode (image, "png", &bytes))
        return;
      again = load (bytes, GTORCH_IMAGE_MODE_UNCHANGED, TRUE, &error);
      g_assert_no_error (error);
      assert_equal (image, again);
    }
}

/* A gray PNG file needs several parts, rows that differ and no GdkPixbuf to be written. */
static void
test_gray_png_is_gray (void)
{
  static const GTorchImageMode modes[] = { GTORCH_IMAGE_MODE_UNCHANGED, GTORCH_IMAGE_MODE_GRAY };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (1);
  g_autoptr (GTorchTensor) drawn =
      gtorch_randint (0, 256, GTORCH_SHAPE (1, 300, 401), GTORCH_DTYPE_UINT8, gtorch_device_cpu (),
                      generator, &error);
  g_autoptr (GTorchTensor) image = gtorch_tensor_narrow (drawn, 2, 1, 400, &error);
  g_autoptr (GBytes) bytes = gtorch_image_encode (image, "png", 100, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (g_bytes_get_size (bytes), >, 65536);
  for (guint i = 0; i < G_N_ELEMENTS (modes); i++)
    {
      g_autoptr (GTorchTensor) again = load (bytes, modes[i], TRUE, &error);
      g_autoptr (GTorchTensor) same = NULL;

      if (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
        {
          g_test_skip (error->message);
          return;
        }
      g_assert_no_error (error);
      same = gtorch_tensor_equal (again, image, &error);
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_tensor_item_int (same, &error), ==, 1);
    }
}

/* Gray JPEG files of TurboJPEG, which the first bytes of their frames tell: one component. */
static void
test_gray_jpeg_is_gray (void)
{
  static const guint8 frame[] = { 0xff, 0xc0, 0, 11, 8, 0, 3, 0, 5, 1 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) image = numbers (1, 10);
  g_autoptr (GTorchTensor) transposed = gtorch_tensor_transpose (image, 1, 2, &error);
  g_autoptr (GTorchTensor) straight = gtorch_tensor_contiguous (transposed, &error);
  g_autoptr (GTorchTensor) back = gtorch_tensor_transpose (straight, 1, 2, &error);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GBytes) of_strides = NULL;
  g_autoptr (GTorchTensor) again = NULL;
  g_autoptr (GTorchTensor) near = NULL;

  if (!encode (image, "jpeg", &bytes))
    return;
  if (memmem (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), frame, sizeof frame)
      == NULL)
    {
      g_test_skip ("TurboJPEG is not installed");
      return;
    }
  again = load (bytes, GTORCH_IMAGE_MODE_UNCHANGED, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_size (again, 0, &error), ==, 1);
  near = gtorch_tensor_allclose (again, image, 0, 3, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_item_int (near, &error), ==, 1);
  g_assert_true (encode (back, "jpeg", &of_strides) && g_bytes_equal (bytes, of_strides));
}

/* The channels of an image that a stream has yet to compute are waited for. */
static void
test_images_of_streams_are_waited_for (void)
{
  static const gchar *const formats[] = { "png", "jpeg" };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, &error);
  g_autoptr (GTorchTensor) slow =
      gtorch_ones (GTORCH_SHAPE (700, 700), GTORCH_DTYPE_FLOAT32, NULL, &error);

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    for (gint64 channels = 1; channels <= 3; channels += 2)
      {
        g_autoptr (GTorchTensor) image =
            gtorch_full (GTORCH_SHAPE (channels, 30, 40), 7, GTORCH_DTYPE_UINT8, NULL, &error);
        g_autoptr (GTorchTensor) added = gtorch_tensor_add_int (image, 100, 1, &error);
        g_autoptr (GBytes) expected = NULL;
        g_autoptr (GBytes) bytes = NULL;

        g_assert_no_error (error);
        if (!encode (added, formats[i], &expected))
          return;
        {
          g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
          g_autoptr (GTorchTensor) product = gtorch_tensor_matmul (slow, slow, &error);
          g_autoptr (GTorchTensor) late = gtorch_tensor_add_int (image, 100, 1, &error);

          g_assert_no_error (error);
          g_assert_true (encode (late, formats[i], &bytes));
        }
        g_assert_true (g_bytes_equal (bytes, expected));
      }
}

static void
on_saved (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
test_saved_in_another_thread (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) image = numbers (1, 10);
  g_autofree gchar *folder = g_dir_make_tmp (NULL, &error);
  g_autofree gchar *path = g_build_filename (folder, "a.png", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  const struct
  {
    const gchar *format;
    gboolean is_cancelled;
  } cases[] = { { "png", FALSE }, { "png", TRUE }, { "tiff", FALSE } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GAsyncResult) result = NULL;
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      gboolean is_saved;

      if (cases[i].is_cancelled)
        g_cancellable_cancel (cancellable);
      gtorch_image_save_file_async (image, file, cases[i].format, 75, G_PRIORITY_DEFAULT,
                                    cancellable, on_saved, &result);
      g_assert_null (result);
      while (result == NULL)
        g_main_context_iteration (NULL, TRUE);
      is_saved = gtorch_image_save_file_finish (result, &error);
      g_assert_cmpint (is_saved, ==, i == 0);
      if (i == 0)
        g_assert_no_error (error);
      else if (i == 1)
        g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      else
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_clear_error (&error);
      g_assert_false (gtorch_image_save_file_finish (result, &error)); /* it was taken */
      g_clear_error (&error);
    }
  g_assert_true (g_file_test (path, G_FILE_TEST_IS_REGULAR));
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

static gboolean
cancel (gpointer data)
{
  g_cancellable_cancel (data);
  return G_SOURCE_REMOVE;
}

/* Which would take seconds to its end. */
static void
test_saving_is_cancelled_at_once (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) image =
      gtorch_randint (0, 256, GTORCH_SHAPE (3, 3000, 3000), GTORCH_DTYPE_UINT8, NULL, NULL, &error);
  g_autofree gchar *folder = g_dir_make_tmp (NULL, &error);
  g_autofree gchar *path = g_build_filename (folder, "a.png", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  gint64 start = g_get_monotonic_time ();

  g_assert_no_error (error);
  gtorch_image_save_file_async (image, file, "png", 75, G_PRIORITY_DEFAULT, cancellable, on_saved,
                                &result);
  g_timeout_add (20, cancel, cancellable);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_false (gtorch_image_save_file_finish (result, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (g_get_monotonic_time () - start, <, G_USEC_PER_SEC);
  g_assert_false (g_file_query_exists (file, NULL));
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

static void
test_modes (void)
{
  static const struct
  {
    GTorchImageMode mode;
    gint64 channels;
  } cases[] = {
    { GTORCH_IMAGE_MODE_UNCHANGED, 3 },  { GTORCH_IMAGE_MODE_GRAY, 1 },
    { GTORCH_IMAGE_MODE_GRAY_ALPHA, 2 }, { GTORCH_IMAGE_MODE_RGB, 3 },
    { GTORCH_IMAGE_MODE_RGB_ALPHA, 4 },
  };
  static const gchar *const formats[] = { "png", "jpeg" };
  g_autoptr (GTorchTensor) image = numbers (1, 10);

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    {
      g_autoptr (GBytes) bytes = NULL;

      if (!encode (image, formats[i], &bytes))
        return;
      for (guint j = 0; j < G_N_ELEMENTS (cases); j++)
        {
          g_autoptr (GError) error = NULL;
          g_autoptr (GTorchTensor) loaded = load (bytes, cases[j].mode, TRUE, &error);
          g_autoptr (GTorchTensor) first = NULL;
          const gint64 *shape;
          gsize n_dims;

          g_assert_no_error (error);
          shape = gtorch_tensor_get_shape (loaded, &n_dims);
          g_assert_cmpuint (n_dims, ==, 3);
          /* gray files have one channel, unless TurboJPEG is missing */
          g_assert_true (shape[0] == cases[j].channels || (j == 0 && shape[0] == 1));
          g_assert_true (i == 1 || j > 0 || shape[0] == 1);
          /* gray is gray in any of them */
          first = gtorch_tensor_narrow (loaded, 0, 0, 1, &error);
          if (i == 0)
            assert_equal (first, image);
        }
    }
}

/* An Exif segment with an orientation behind the first two bytes of a JPEG file. */
static GBytes *
with_orientation (GBytes *jpeg, guint8 orientation)
{
  const guint8 segment[] = { 0xff, 0xe1, 0, 34, 'E', 'x',         'i', 'f', 0, 0,    'M', 'M',
                             0,    42,   0, 0,  0,   8,           0,   1,   1, 0x12, 0,   3,
                             0,    0,    0, 1,  0,   orientation, 0,   0,   0, 0,    0,   0 };
  GByteArray *bytes = g_byte_array_new ();
  gsize n;
  const guint8 *data = g_bytes_get_data (jpeg, &n);

  g_byte_array_append (bytes, data, 2);
  g_byte_array_append (bytes, segment, sizeof segment);
  g_byte_array_append (bytes, data + 2, n - 2);
  return g_byte_array_free_to_bytes (bytes);
}

/* What exif_transpose () of PIL does, by flips and transposes. */
static GTorchTensor *
turned (GTorchTensor *image, guint8 orientation)
{
  static const struct
  {
    gboolean swaps;
    gint64 dims[2];
    gsize n;
  } ways[] = {
    { FALSE, { 0, 0 }, 0 }, { FALSE, { 2, 0 }, 1 }, { FALSE, { 1, 2 }, 2 }, { FALSE, { 1, 0 }, 1 },
    { TRUE, { 0, 0 }, 0 },  { TRUE, { 2, 0 }, 1 },  { TRUE, { 1, 2 }, 2 },  { TRUE, { 1, 0 }, 1 },
  };
  g_autoptr (GTorchTensor) swapped = ways[orientation - 1].swaps
                                         ? gtorch_tensor_transpose (image, 1, 2, NULL)
                                         : g_object_ref (image);

  return ways[orientation - 1].n > 0 ? gtorch_tensor_flip (swapped, ways[orientation - 1].dims,
                                                           ways[orientation - 1].n, NULL)
                                     : g_steal_pointer (&swapped);
}

static void
test_orientation (void)
{
  g_autoptr (GTorchTensor) image = numbers (1, 16);
  g_autoptr (GBytes) jpeg = NULL;

  if (!encode (image, "jpeg", &jpeg))
    return;
  for (guint8 orientation = 1; orientation <= 8; orientation++)
    {
      g_autoptr (GBytes) bytes = with_orientation (jpeg, orientation);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) stored = load (bytes, GTORCH_IMAGE_MODE_GRAY, FALSE, &error);
      g_autoptr (GTorchTensor) loaded = load (bytes, GTORCH_IMAGE_MODE_GRAY, TRUE, &error);
      g_autoptr (GTorchTensor) expected = NULL;

      g_assert_no_error (error);
      expected = turned (stored, orientation);
      assert_equal (loaded, expected);
    }
}

static void
test_refuses_files (void)
{
  g_autoptr (GTorchTensor) image = numbers (3, 5);
  static const gchar *const formats[] = { "png", "jpeg" };
  g_autoptr (GBytes) nothing = g_bytes_new_static ("no image", 8);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    {
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (GError) large = NULL;
      gsize n;

      if (!encode (image, formats[i], &bytes))
        return;
      n = g_bytes_get_size (bytes);
      for (gsize length = 0; length < n; length += 7)
        {
          g_autoptr (GBytes) part = g_bytes_new_from_bytes (bytes, 0, length);
          g_autoptr (GError) local = NULL;

          g_assert_null (load (part, GTORCH_IMAGE_MODE_RGB, TRUE, &local));
          g_assert_error (local, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
        }
      g_assert_null (
          gtorch_image_load_bytes (bytes, GTORCH_IMAGE_MODE_RGB, TRUE, 14, NULL, &large));
      g_assert_error (large, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpstr (large->message, ==,
                       "image_load: an image of 5 × 3 pixels; 1 to 14 pixels are allowed");
    }
  g_assert_null (load (nothing, GTORCH_IMAGE_MODE_RGB, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
}

static void
test_refuses_images (void)
{
  const gint64 shape[] = { 2, 3, 5 };
  g_autoptr (GTorchTensor) floats = gtorch_zeros (shape, 3, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) two = gtorch_zeros (shape, 3, GTORCH_DTYPE_UINT8, NULL, NULL);
  g_autoptr (GTorchTensor) four = numbers (4, 1);
  const struct
  {
    GTorchTensor *image;
    const gchar *format;
    gint quality, code;
    const gchar *message;
  } cases[] = {
    { floats, "png", 90, GTORCH_ERROR_DTYPE,
      "image_encode: the image is of float32, but must be of uint8" },
    { two, "png", 90, GTORCH_ERROR_SHAPE,
      "image_encode: the shape is [2, 3, 5], but must be [1, 3 or 4, height, width]" },
    { four, "jpeg", 90, GTORCH_ERROR_SHAPE,
      "image_encode: the shape is [4, 3, 5], but JPEG has no opacity" },
    { four, "tiff", 90, GTORCH_ERROR_NOT_SUPPORTED,
      "image_encode: the format is “tiff”, but must be png or jpeg" },
    { four, "png", 0, GTORCH_ERROR_INVALID,
      "image_encode: the quality is 0, but must be 1 to 100" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (
          gtorch_image_encode (cases[i].image, cases[i].format, cases[i].quality, &error));
      g_assert_error (error, GTORCH_ERROR, cases[i].code);
      g_assert_cmpstr (error->message, ==, cases[i].message);
    }
}

static void
on_done (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
test_files (void)
{
  g_autoptr (GTorchTensor) image = numbers (3, 5);
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-XXXXXX", NULL);
  g_autofree gchar *path = g_build_filename (folder, "image.png", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GTorchTensor) loaded = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;

  if (!encode (image, "png", &bytes))
    {
      g_rmdir (folder);
      return;
    }
  gtorch_image_save_file (image, file, "png", 90, NULL, &error);
  g_assert_no_error (error);
  gtorch_image_load_file_async (file, GTORCH_IMAGE_MODE_RGB, TRUE, 0, G_PRIORITY_DEFAULT, NULL,
                                on_done, &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  loaded = gtorch_image_load_file_finish (result, &error);
  g_assert_no_error (error);
  assert_equal (loaded, image);
  g_cancellable_cancel (cancellable);
  g_assert_null (
      gtorch_image_load_bytes (bytes, GTORCH_IMAGE_MODE_RGB, TRUE, 0, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_unlink (path);
  g_rmdir (folder);
}

static GTorchImageFolder *
wait_for_folder (GFile *root, GTorchImageMode mode, GCancellable *cancellable, GError **error)
{
  g_autoptr (GAsyncResult) result = NULL;

  gtorch_image_folder_create_async (root, NULL, mode, G_PRIORITY_DEFAULT, cancellable, on_done,
                                    &result);
  g_assert_null (result); /* it does not block */
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return gtorch_image_folder_create_finish (result, error);
}

static void
test_folders_in_another_thread (void)
{
  g_autofree gchar *root = g_dir_make_tmp ("gtorch-XXXXXX", NULL);
  g_autofree gchar *class = g_build_filename (root, "cat", NULL);
  g_autofree gchar *path = g_build_filename (class, "1.png", NULL);
  g_autoptr (GFile) place = g_file_new_for_path (root);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GTorchImageFolder) folder = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_null (wait_for_folder (place, GTORCH_IMAGE_MODE_RGB, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_mkdir (class, 0700);
  g_file_set_contents (path, "", 0, &error);
  g_assert_no_error (error);
  folder = wait_for_folder (place, GTORCH_IMAGE_MODE_RGB, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (gtorch_image_folder_get_classes (folder)[0], ==, "cat");
  g_assert_cmpint (gtorch_dataset_get_length (GTORCH_DATASET (folder), NULL), ==, 1);
  g_assert_null (wait_for_folder (place, (GTorchImageMode) 77, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_cancellable_cancel (cancelled);
  g_assert_null (wait_for_folder (place, GTORCH_IMAGE_MODE_RGB, cancelled, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_unlink (path);
  g_rmdir (class);
  g_rmdir (root);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/Image/png_comes_back", test_png_comes_back);
  g_test_add_func ("/GTorch/Image/gray_png_is_gray", test_gray_png_is_gray);
  g_test_add_func ("/GTorch/Image/gray_jpeg_is_gray", test_gray_jpeg_is_gray);
  g_test_add_func ("/GTorch/Image/images_of_streams_are_waited_for",
                   test_images_of_streams_are_waited_for);
  g_test_add_func ("/GTorch/Image/saved_in_another_thread", test_saved_in_another_thread);
  g_test_add_func ("/GTorch/Image/modes", test_modes);
  g_test_add_func ("/GTorch/Image/orientation", test_orientation);
  g_test_add_func ("/GTorch/Image/refuses_files", test_refuses_files);
  g_test_add_func ("/GTorch/Image/refuses_images", test_refuses_images);
  g_test_add_func ("/GTorch/Image/files", test_files);
  g_test_add_func ("/GTorch/Image/saving_is_cancelled_at_once", test_saving_is_cancelled_at_once);
  g_test_add_func ("/GTorch/Image/folders_in_another_thread", test_folders_in_another_thread);
  return g_test_run ();
}
