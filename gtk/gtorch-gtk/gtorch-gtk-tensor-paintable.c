/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The elements come to the memory of the host by an asynchronous copy, and become the bytes of a texture in a
 * thread. Bytes of colours on the CPU are taken as they are: the texture then holds the tensor's memory.
 * */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "gtorch-gtk-private.h"

/**
 * GTorchGtkTensorPaintable:
 *
 * Shows a tensor as an image in any widget that takes a [iface@Gdk.Paintable], such as
 * [class@Gtk.Picture].
 *
 * Shapes are those of [class@GTorchPlot.Image]: `[height, width]` or `[1, height, width]` with one
 * number for each pixel, and `[3 or 4, height, width]` or `[height, width, 3 or 4]` with colours.
 * Numbers of floating-point types and bools go from 0 to 1, others from 0 to 255, unless
 * [method@TensorPaintable.set_range] says otherwise. With [property@TensorPaintable:fit-range] they
 * go from the least to the greatest one, which shows tensors that are no pictures, such as weights.
 *
 * Nothing waits for a device: the image appears when its elements have arrived, and until then the former
 * one is shown. A contiguous tensor of uint8 on the CPU, `[height, width, 3 or 4]`, is not copied. After
 * the elements of a tensor have changed, [method@TensorPaintable.update] shows them.
 *
 * ```c
 * paintable = gtorch_gtk_tensor_paintable_new ();
 * picture = gtk_picture_new_for_paintable (GDK_PAINTABLE (paintable));
 * if (!gtorch_gtk_tensor_paintable_set_tensor (paintable, sample, &error))
 *   return FALSE;
 * ```
 *
 * Since: 0.1
 */

#define MAX_SIDE 16384

typedef struct
{
  gint height, width, n_channels;
  gboolean is_last;   /* the channels are the last dimension */
  gboolean is_direct; /* its bytes are those of a texture */
  gdouble unit;       /* of 255 */
} Layout;

struct _GTorchGtkTensorPaintable
{
  GObject parent_instance;
  GTorchTensor *tensor;
  Layout layout;
  GdkTexture *texture;
  GCancellable *cancellable; /* of the read that goes on; NULL: none does */
  GError *error;
  gint colormap;            /* of GTorchPlotColormap */
  gdouble minimum, maximum; /* NaN: by the dtype, or the numbers */
  gboolean fit_range;
};

enum
{
  PROP_TENSOR = 1,
  PROP_TEXTURE,
  PROP_LOADING,
  PROP_ERROR,
  PROP_COLORMAP,
  PROP_FIT_RANGE,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

static void gtorch_gtk_tensor_paintable_paintable_init (GdkPaintableInterface *iface);

G_DEFINE_TYPE_WITH_CODE (GTorchGtkTensorPaintable, gtorch_gtk_tensor_paintable, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (GDK_TYPE_PAINTABLE,
                                                gtorch_gtk_tensor_paintable_paintable_init))

/* --- paintable --- */

static void
gtorch_gtk_tensor_paintable_snapshot (GdkPaintable *paintable, GdkSnapshot *snapshot, double width,
                                      double height)
{
  GTorchGtkTensorPaintable *self = GTORCH_GTK_TENSOR_PAINTABLE (paintable);
  GtkSnapshot *gtk_snapshot = GTK_SNAPSHOT (snapshot);
  const graphene_rect_t bounds = GRAPHENE_RECT_INIT (0, 0, width, height);
  gint columns;

  if (self->texture == NULL)
    return;
  columns = gdk_texture_get_width (self->texture);
  if (width < 2 * columns || columns > 1024) /* smooth, or small enough to be so */
    {
      gtk_snapshot_append_texture (gtk_snapshot, self->texture, &bounds);
      return;
    }
  else
    { /* pixels stay squares; GTK 4.8 has no filter for that */
      cairo_t *cr = gtk_snapshot_append_cairo (gtk_snapshot, &bounds);
      const gint rows = gdk_texture_get_height (self->texture);
      cairo_surface_t *surface = cairo_image_surface_create (CAIRO_FORMAT_ARGB32, columns, rows);

      gdk_texture_download (self->texture, cairo_image_surface_get_data (surface),
                            cairo_image_surface_get_stride (surface));
      cairo_surface_mark_dirty (surface);
      cairo_scale (cr, width / columns, height / rows);
      cairo_set_source_surface (cr, surface, 0, 0);
      cairo_pattern_set_filter (cairo_get_source (cr), CAIRO_FILTER_NEAREST);
      cairo_paint (cr);
      cairo_surface_destroy (surface);
      cairo_destroy (cr);
    }
}

static int
gtorch_gtk_tensor_paintable_get_intrinsic_width (GdkPaintable *paintable)
{
  return GTORCH_GTK_TENSOR_PAINTABLE (paintable)->layout.width;
}

static int
gtorch_gtk_tensor_paintable_get_intrinsic_height (GdkPaintable *paintable)
{
  return GTORCH_GTK_TENSOR_PAINTABLE (paintable)->layout.height;
}

static GdkPaintable *
gtorch_gtk_tensor_paintable_get_current_image (GdkPaintable *paintable)
{
  GTorchGtkTensorPaintable *self = GTORCH_GTK_TENSOR_PAINTABLE (paintable);

  if (self->texture != NULL)
    return g_object_ref (GDK_PAINTABLE (self->texture));
  return gdk_paintable_new_empty (self->layout.width, self->layout.height);
}

static void
gtorch_gtk_tensor_paintable_paintable_init (GdkPaintableInterface *iface)
{
  iface->snapshot = gtorch_gtk_tensor_paintable_snapshot;
  iface->get_intrinsic_width = gtorch_gtk_tensor_paintable_get_intrinsic_width;
  iface->get_intrinsic_height = gtorch_gtk_tensor_paintable_get_intrinsic_height;
  iface->get_current_image = gtorch_gtk_tensor_paintable_get_current_image;
}

/* --- reading --- */

typedef struct
{
  GTorchTensor *host;
  Layout layout;
  gdouble minimum, maximum;
  gboolean fit_range;
  GTorchPlotColormap colormap;
} Paint;

static void
paint_free (gpointer data)
{
  Paint *paint = data;

  g_clear_object (&paint->host);
  g_free (paint);
}

static guint8
to_byte (gdouble value)
{
  return value > 0 ? (guint8) (MIN (value, 1) * 255 + 0.5) : 0; /* NaN: 0 */
}

/* Of the finite numbers, without those of alpha. */
static void
find_range (const Paint *paint, const gdouble *values, gdouble *low, gdouble *high)
{
  const Layout *layout = &paint->layout;
  const gsize n = (gsize) layout->height * layout->width;
  const gsize step = layout->is_last ? layout->n_channels : 1, next = layout->is_last ? 1 : n;
  gdouble least = G_MAXDOUBLE, greatest = -G_MAXDOUBLE;

  for (gsize i = 0; i < n; i++)
    for (gint c = 0; c < MIN (layout->n_channels, 3); c++)
      {
        const gdouble value = values[i * step + c * next];

        if (!isfinite (value))
          continue;
        least = MIN (least, value);
        greatest = MAX (greatest, value);
      }
  if (least > greatest)
    return;
  *low = least;
  *high = greatest;
}

static void
fill_pixels (const Paint *paint, const gdouble *values, guint8 *pixels)
{
  const Layout *layout = &paint->layout;
  const gsize n = (gsize) layout->height * layout->width;
  const gsize step = layout->is_last ? layout->n_channels : 1, next = layout->is_last ? 1 : n;
  gdouble low = 0, high = layout->unit, unit, scale;

  if (paint->fit_range)
    find_range (paint, values, &low, &high);
  low = isnan (paint->minimum) ? low : paint->minimum;
  high = isnan (paint->maximum) ? high : paint->maximum;
  /* a power of two: the difference of two finite numbers may be infinite, or have no digits */
  unit = MAX (fabs (low), fabs (high)) > 1e300    ? 0x1p-10
         : MAX (fabs (low), fabs (high)) < 1e-280 ? 0x1p200
                                                  : 1;
  scale = high > low ? 1 / (high * unit - low * unit) : 0;

  for (gsize i = 0; i < n; i++)
    {
      const gdouble *from = values + i * step;
      guint8 *to = pixels + 4 * i;

      if (layout->n_channels == 1)
        {
          const gdouble part = (from[0] * unit - low * unit) * scale;
          gdouble red, green, blue;

          gtorch_plot_colormap_get_color (paint->colormap, part, &red, &green, &blue);
          to[0] = to_byte (red);
          to[1] = to_byte (green);
          to[2] = to_byte (blue);
          to[3] = isnan (part) ? 0 : 255;
          continue;
        }
      for (guint c = 0; c < 3; c++)
        to[c] = to_byte ((from[c * next] * unit - low * unit) * scale);
      to[3] = layout->n_channels == 4 ? to_byte (from[3 * next] / layout->unit) : 255;
    }
}

/* In a thread; the tensor is on the CPU. */
static void
paint_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Paint *paint = data;
  const Layout *layout = &paint->layout;
  g_autofree gdouble *values = NULL;
  g_autoptr (GBytes) bytes = NULL;
  GError *error = NULL;
  guint8 *pixels;
  gsize n;

  if (g_task_return_error_if_cancelled (task))
    return;
  if (layout->is_direct)
    {
      bytes = gtorch_tensor_get_bytes (paint->host, &error);
      if (bytes == NULL)
        g_task_return_error (task, error);
      else
        g_task_return_pointer (task,
                               gdk_memory_texture_new (layout->width, layout->height,
                                                       layout->n_channels == 4 ? GDK_MEMORY_R8G8B8A8
                                                                               : GDK_MEMORY_R8G8B8,
                                                       bytes,
                                                       (gsize) layout->width * layout->n_channels),
                               g_object_unref);
      return;
    }
  values = gtorch_tensor_to_doubles (paint->host, &n, &error);
  pixels = values != NULL ? g_try_malloc_n ((gsize) layout->height * layout->width, 4) : NULL;
  if (pixels == NULL)
    {
      if (error == NULL)
        g_set_error (&error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                     _ ("gtk_tensor_paintable: no memory for %d by %d pixels"), layout->width,
                     layout->height);
      g_task_return_error (task, error);
      return;
    }
  fill_pixels (paint, values, pixels);
  bytes = g_bytes_new_take (pixels, (gsize) layout->height * layout->width * 4);
  g_task_return_pointer (task,
                         gdk_memory_texture_new (layout->width, layout->height, GDK_MEMORY_R8G8B8A8,
                                                 bytes, (gsize) layout->width * 4),
                         g_object_unref);
}

static void
take_texture (GTorchGtkTensorPaintable *self, GdkTexture *texture, GError *error)
{
  GObject *object = G_OBJECT (self);

  g_clear_object (&self->cancellable);
  g_clear_error (&self->error);
  self->error = error;
  if (error == NULL)
    {
      g_clear_object (&self->texture);
      self->texture = texture;
    }
  g_object_freeze_notify (object);
  g_object_notify_by_pspec (object, props[PROP_LOADING]);
  g_object_notify_by_pspec (object, props[PROP_ERROR]);
  g_object_notify_by_pspec (object, props[PROP_TEXTURE]);
  g_object_thaw_notify (object);
  gdk_paintable_invalidate_contents (GDK_PAINTABLE (self));
}

static void
painted (GObject *object, GAsyncResult *result, gpointer data)
{
  GTorchGtkTensorPaintable *self = GTORCH_GTK_TENSOR_PAINTABLE (object);
  GError *error = NULL;
  GdkTexture *texture = g_task_propagate_pointer (G_TASK (result), &error);

  if (g_task_get_cancellable (G_TASK (result)) == self->cancellable)
    take_texture (self, texture, error);
  else
    {
      g_clear_object (&texture);
      g_clear_error (&error);
    }
}

static void
copied (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  Paint *paint = g_task_get_task_data (task);
  GError *error = NULL;

  paint->host = gtorch_tensor_to_device_finish (GTORCH_TENSOR (object), result, &error);
  if (paint->host == NULL)
    g_task_return_error (task, error);
  else
    g_task_run_in_thread (task, paint_in_thread);
}

static void
cancel_read (GTorchGtkTensorPaintable *self)
{
  if (self->cancellable == NULL)
    return;
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
}

static gboolean
find_layout (GTorchTensor *tensor, Layout *layout, GError **error)
{
  const GTorchDType dtype = gtorch_tensor_get_dtype (tensor);
  g_autofree gchar *text = gtorch_gtk_shape_text (tensor, ", ");
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (tensor, &n_dims);
  gint64 height = 0, width = 0;

  *layout = (Layout){ 0 };
  if (gtorch_dtype_is_complex (dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("gtk_tensor_paintable_set_tensor: elements of %s are no colours"),
                   gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  if (n_dims == 2)
    {
      layout->n_channels = 1;
      height = shape[0];
      width = shape[1];
    }
  else if (n_dims == 3 && (shape[0] == 1 || shape[0] == 3 || shape[0] == 4))
    {
      layout->n_channels = shape[0];
      height = shape[1];
      width = shape[2];
    }
  else if (n_dims == 3 && (shape[2] == 3 || shape[2] == 4))
    {
      layout->n_channels = shape[2];
      layout->is_last = TRUE;
      height = shape[0];
      width = shape[1];
    }
  if (layout->n_channels == 0 || height < 1 || width < 1 || height > MAX_SIDE || width > MAX_SIDE)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("gtk_tensor_paintable_set_tensor: the shape [%s] is not [height, width], [1, "
                      "3 "
                      "or 4, height, "
                      "width] or [height, width, 3 or 4], with sides from 1 to %d"),
                   text, MAX_SIDE);
      return FALSE;
    }
  layout->height = height;
  layout->width = width;
  layout->unit = gtorch_dtype_is_floating_point (dtype) || dtype == GTORCH_DTYPE_BOOL ? 1 : 255;
  return TRUE;
}

/* --- class --- */

static void
gtorch_gtk_tensor_paintable_get_property (GObject *object, guint id, GValue *value,
                                          GParamSpec *pspec)
{
  GTorchGtkTensorPaintable *self = GTORCH_GTK_TENSOR_PAINTABLE (object);

  if (id == PROP_TENSOR)
    g_value_set_object (value, self->tensor);
  else if (id == PROP_TEXTURE)
    g_value_set_object (value, self->texture);
  else if (id == PROP_LOADING)
    g_value_set_boolean (value, self->cancellable != NULL);
  else if (id == PROP_ERROR)
    g_value_set_boxed (value, self->error);
  else if (id == PROP_COLORMAP)
    g_value_set_enum (value, self->colormap);
  else if (id == PROP_FIT_RANGE)
    g_value_set_boolean (value, self->fit_range);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_gtk_tensor_paintable_set_property (GObject *object, guint id, const GValue *value,
                                          GParamSpec *pspec)
{
  GTorchGtkTensorPaintable *self = GTORCH_GTK_TENSOR_PAINTABLE (object);
  g_autoptr (GError) error = NULL;

  if (id == PROP_COLORMAP)
    gtorch_gtk_tensor_paintable_set_colormap (self, g_value_get_enum (value));
  else if (id == PROP_FIT_RANGE)
    gtorch_gtk_tensor_paintable_set_fit_range (self, g_value_get_boolean (value));
  else if (id != PROP_TENSOR)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  else if (!gtorch_gtk_tensor_paintable_set_tensor (self, g_value_get_object (value), &error))
    g_warning ("%s", error->message);
}

static void
gtorch_gtk_tensor_paintable_dispose (GObject *object)
{
  GTorchGtkTensorPaintable *self = GTORCH_GTK_TENSOR_PAINTABLE (object);

  cancel_read (self);
  g_clear_object (&self->tensor);
  g_clear_object (&self->texture);
  g_clear_error (&self->error);
  G_OBJECT_CLASS (gtorch_gtk_tensor_paintable_parent_class)->dispose (object);
}

static void
gtorch_gtk_tensor_paintable_class_init (GTorchGtkTensorPaintableClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_gtk_tensor_paintable_get_property;
  object_class->set_property = gtorch_gtk_tensor_paintable_set_property;
  object_class->dispose = gtorch_gtk_tensor_paintable_dispose;
  /**
   * GTorchGtkTensorPaintable:tensor:
   *
   * The tensor.
   *
   * Since: 0.1
   */
  props[PROP_TENSOR] =
      g_param_spec_object ("tensor", NULL, NULL, GTORCH_TYPE_TENSOR, GTORCH_GTK_PARAM_FLAGS);
  /**
   * GTorchGtkTensorPaintable:texture:
   *
   * What is shown.
   *
   * Since: 0.1
   */
  props[PROP_TEXTURE] =
      g_param_spec_object ("texture", NULL, NULL, GDK_TYPE_TEXTURE, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkTensorPaintable:loading: (getter is_loading)
   *
   * Whether elements are on their way.
   *
   * Since: 0.1
   */
  props[PROP_LOADING] = g_param_spec_boolean ("loading", NULL, NULL, FALSE, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkTensorPaintable:error:
   *
   * Why the last read has failed.
   *
   * Since: 0.1
   */
  props[PROP_ERROR] = g_param_spec_boxed ("error", NULL, NULL, G_TYPE_ERROR, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkTensorPaintable:colormap:
   *
   * Which colours stand for numbers, if there is one for each pixel.
   *
   * Since: 0.1
   */
  props[PROP_COLORMAP] = g_param_spec_enum ("colormap", NULL, NULL, GTORCH_PLOT_TYPE_COLORMAP,
                                            GTORCH_PLOT_COLORMAP_GRAY, GTORCH_GTK_PARAM_FLAGS);
  /**
   * GTorchGtkTensorPaintable:fit-range:
   *
   * Whether the least and the greatest finite number of the tensor are the ends of the range, where
   * [method@TensorPaintable.set_range] has set none.
   *
   * Since: 0.1
   */
  props[PROP_FIT_RANGE] =
      g_param_spec_boolean ("fit-range", NULL, NULL, FALSE, GTORCH_GTK_PARAM_FLAGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_gtk_tensor_paintable_init (GTorchGtkTensorPaintable *self)
{
  self->colormap = GTORCH_PLOT_COLORMAP_GRAY;
  self->minimum = self->maximum = NAN;
}

/**
 * gtorch_gtk_tensor_paintable_new:
 *
 * Creates a paintable without a tensor.
 *
 * Returns: (transfer full): a new paintable
 *
 * Since: 0.1
 */
GTorchGtkTensorPaintable *
gtorch_gtk_tensor_paintable_new (void)
{
  return g_object_new (GTORCH_GTK_TYPE_TENSOR_PAINTABLE, NULL);
}

/**
 * gtorch_gtk_tensor_paintable_get_tensor: (get-property tensor)
 * @self: a paintable
 *
 * Gets the tensor.
 *
 * Returns: (transfer none) (nullable): the tensor, or %NULL
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_gtk_tensor_paintable_get_tensor (GTorchGtkTensorPaintable *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self), NULL);
  return self->tensor;
}

/**
 * gtorch_gtk_tensor_paintable_set_tensor:
 * @self: a paintable
 * @tensor: (nullable): a tensor of one of the shapes that the class names, on any device, or %NULL
 * @error: return location for an error
 *
 * Shows a tensor, as soon as its elements have arrived. If they do not, [property@TensorPaintable:error]
 * says why.
 *
 * Returns: %TRUE if it can be shown; %FALSE with %GTORCH_ERROR_SHAPE or %GTORCH_ERROR_DTYPE, and the
 *   former tensor
 *
 * Since: 0.1
 */
gboolean
gtorch_gtk_tensor_paintable_set_tensor (GTorchGtkTensorPaintable *self, GTorchTensor *tensor,
                                        GError **error)
{
  Layout layout = { 0 };
  gboolean is_resized;

  g_return_val_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self), FALSE);
  g_return_val_if_fail (tensor == NULL || GTORCH_IS_TENSOR (tensor), FALSE);
  if (tensor != NULL && !find_layout (tensor, &layout, error))
    return FALSE;
  is_resized = layout.width != self->layout.width || layout.height != self->layout.height;
  self->layout = layout;
  if (is_resized)
    gdk_paintable_invalidate_size (GDK_PAINTABLE (self));
  if (g_set_object (&self->tensor, tensor))
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_TENSOR]);
  gtorch_gtk_tensor_paintable_update (self);
  return TRUE;
}

/**
 * gtorch_gtk_tensor_paintable_update:
 * @self: a paintable
 *
 * Reads the elements again, after they have changed. What goes on as this is called is given up.
 *
 * Since: 0.1
 */
void
gtorch_gtk_tensor_paintable_update (GTorchGtkTensorPaintable *self)
{
  g_autoptr (GTask) task = NULL;
  Paint *paint;

  g_return_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self));
  cancel_read (self);
  if (self->tensor == NULL)
    {
      take_texture (self, NULL, NULL);
      return;
    }
  self->cancellable = g_cancellable_new ();
  task = g_task_new (self, self->cancellable, painted, NULL);
  paint = g_new0 (Paint, 1);
  paint->layout = self->layout;
  paint->layout.is_direct = self->layout.is_last && isnan (self->minimum) && isnan (self->maximum)
                            && !self->fit_range
                            && gtorch_tensor_get_dtype (self->tensor) == GTORCH_DTYPE_UINT8;
  paint->minimum = self->minimum;
  paint->maximum = self->maximum;
  paint->fit_range = self->fit_range;
  paint->colormap = (GTorchPlotColormap) self->colormap;
  g_task_set_task_data (task, paint, paint_free);
  gtorch_tensor_to_device_async (self->tensor, gtorch_device_cpu (), self->cancellable, copied,
                                 g_steal_pointer (&task));
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LOADING]);
}

/**
 * gtorch_gtk_tensor_paintable_get_texture: (get-property texture)
 * @self: a paintable
 *
 * Gets what is shown.
 *
 * Returns: (transfer none) (nullable): the texture, or %NULL before the first elements have arrived
 *
 * Since: 0.1
 */
GdkTexture *
gtorch_gtk_tensor_paintable_get_texture (GTorchGtkTensorPaintable *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self), NULL);
  return self->texture;
}

/**
 * gtorch_gtk_tensor_paintable_is_loading: (get-property loading)
 * @self: a paintable
 *
 * Tells whether elements are on their way.
 *
 * Returns: %TRUE if they are
 *
 * Since: 0.1
 */
gboolean
gtorch_gtk_tensor_paintable_is_loading (GTorchGtkTensorPaintable *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self), FALSE);
  return self->cancellable != NULL;
}

/**
 * gtorch_gtk_tensor_paintable_get_error: (get-property error)
 * @self: a paintable
 *
 * Gets why the last read has failed.
 *
 * Returns: (transfer none) (nullable): the error, or %NULL
 *
 * Since: 0.1
 */
const GError *
gtorch_gtk_tensor_paintable_get_error (GTorchGtkTensorPaintable *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self), NULL);
  return self->error;
}

/**
 * gtorch_gtk_tensor_paintable_get_colormap: (get-property colormap)
 * @self: a paintable
 *
 * Gets which colours stand for numbers.
 *
 * Returns: the map
 *
 * Since: 0.1
 */
GTorchPlotColormap
gtorch_gtk_tensor_paintable_get_colormap (GTorchGtkTensorPaintable *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self), GTORCH_PLOT_COLORMAP_GRAY);
  return (GTorchPlotColormap) self->colormap;
}

/**
 * gtorch_gtk_tensor_paintable_set_colormap: (set-property colormap)
 * @self: a paintable
 * @colormap: the map
 *
 * Sets which colours stand for numbers, if there is one for each pixel.
 *
 * Since: 0.1
 */
void
gtorch_gtk_tensor_paintable_set_colormap (GTorchGtkTensorPaintable *self,
                                          GTorchPlotColormap colormap)
{
  g_return_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self));
  if (self->colormap == (gint) colormap)
    return;
  self->colormap = colormap;
  if (self->tensor != NULL)
    gtorch_gtk_tensor_paintable_update (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_COLORMAP]);
}

/**
 * gtorch_gtk_tensor_paintable_get_range:
 * @self: a paintable
 * @minimum: (out): the number that is black, or NaN for 0
 * @maximum: (out): the number that is white, or NaN for 1 or 255
 *
 * Gets the range of numbers that was set.
 *
 * Since: 0.1
 */
void
gtorch_gtk_tensor_paintable_get_range (GTorchGtkTensorPaintable *self, gdouble *minimum,
                                       gdouble *maximum)
{
  g_return_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self));
  g_return_if_fail (minimum != NULL && maximum != NULL);
  *minimum = self->minimum;
  *maximum = self->maximum;
}

/**
 * gtorch_gtk_tensor_paintable_set_range:
 * @self: a paintable
 * @minimum: the number that is black, or the first colour of the map; NaN for 0
 * @maximum: the number that is white, or the last colour of the map; NaN for 1 or 255, by the dtype
 * @error: return location for an error
 *
 * Sets the range of numbers. Those outside look like the nearer end. Alpha always goes to 1 or 255. With
 * [property@TensorPaintable:fit-range], NaN stands for the least or the greatest number of the tensor.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if a number is infinite, or @minimum
 *   greater than @maximum
 *
 * Since: 0.1
 */
gboolean
gtorch_gtk_tensor_paintable_set_range (GTorchGtkTensorPaintable *self, gdouble minimum,
                                       gdouble maximum, GError **error)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self), FALSE);
  if (isinf (minimum) || isinf (maximum) || minimum > maximum)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("gtk_tensor_paintable_set_range: from %g to %g: both must be finite, or NaN "
                      "for those that are "
                      "not set, and the first one not greater"),
                   minimum, maximum);
      return FALSE;
    }
  self->minimum = minimum;
  self->maximum = maximum;
  if (self->tensor != NULL)
    gtorch_gtk_tensor_paintable_update (self);
  return TRUE;
}

/**
 * gtorch_gtk_tensor_paintable_get_fit_range: (get-property fit-range)
 * @self: a paintable
 *
 * Tells whether the numbers of the tensor are the ends of the range.
 *
 * Returns: %TRUE if they are
 *
 * Since: 0.1
 */
gboolean
gtorch_gtk_tensor_paintable_get_fit_range (GTorchGtkTensorPaintable *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self), FALSE);
  return self->fit_range;
}

/**
 * gtorch_gtk_tensor_paintable_set_fit_range: (set-property fit-range)
 * @self: a paintable
 * @fit_range: whether the least and the greatest number of the tensor are the ends of the range
 *
 * Sets whether the numbers of the tensor are the ends of the range, where none was set.
 *
 * Since: 0.1
 */
void
gtorch_gtk_tensor_paintable_set_fit_range (GTorchGtkTensorPaintable *self, gboolean fit_range)
{
  g_return_if_fail (GTORCH_GTK_IS_TENSOR_PAINTABLE (self));
  if (self->fit_range == !!fit_range)
    return;
  self->fit_range = !!fit_range;
  if (self->tensor != NULL)
    gtorch_gtk_tensor_paintable_update (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_FIT_RANGE]);
}
