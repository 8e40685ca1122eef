/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradients as products of two narrow matrices, after Vogels et al., PowerSGD: Practical Low-Rank Gradient
 * Compression for Distributed Optimization, NeurIPS 2019. */

#include "config.h"

#include "distributed/gtorch-power-sgd.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-shape.h"
#include "device/gtorch-device.h"
#include "device/gtorch-generator.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-compare-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchPowerSGD:
 *
 * Exchanges gradients as matrices of low rank: PowerSGD.
 *
 * A gradient of two or more dimensions is seen as a matrix M with n rows, the first dimension, and m columns.
 * Instead of its n·m numbers the ranks exchange those of a matrix P with n rows and of a matrix Q with m
 * rows, each with [property@PowerSGD:matrix-approximation-rank] columns, and compute with P·Qᵀ. What is
 * lost is added to the gradients of the next pass. Gradients of one dimension, and matrices for which this
 * does not save enough, are exchanged as they are, and so is everything in the first
 * [property@PowerSGD:start-iteration] passes.
 *
 * ```c
 * static GTorchTensor *
 * send_low_rank (GTorchGradBucket *bucket, gpointer user_data, GError **error)
 * {
 *   return gtorch_power_sgd_average (user_data, bucket, error);
 * }
 *
 * sgd = gtorch_power_sgd_new (2, 1000, &error);
 * gtorch_distributed_module_register_comm_hook (model, send_low_rank, sgd, g_object_unref, &error);
 * ```
 *
 * All ranks have the same settings. The object belongs to one module.
 *
 * Since: 0.1
 */

typedef struct
{
  GTorchTensor *residue; /* what was not sent, like the buffer */
  GPtrArray *qs;         /* of the last pass */
  GPtrArray *parameters; /* of the bucket */
} State;

struct _GTorchPowerSGD
{
  GObject parent_instance;
  guint matrix_approximation_rank;
  guint64 start_iteration, iteration, random_seed;
  gdouble min_compression_rate, orthogonalization_epsilon;
  gboolean use_error_feedback, warm_start, is_compared;
  GHashTable *states; /* by the index of the bucket */
  GTorchGenerator *generator;
};

G_DEFINE_TYPE (GTorchPowerSGD, gtorch_power_sgd, G_TYPE_OBJECT)

typedef GTorchPowerSGD Self;

static const GTorchField fields[] = {
  /**
   * GTorchPowerSGD:matrix-approximation-rank:
   *
   * How many columns the matrices P and Q have.
   *
   * Since: 0.1
   */
  { "matrix-approximation-rank", GTORCH_FIELD_UINT,
    GTORCH_FIELD (GTorchPowerSGD, matrix_approximation_rank), 1, NULL, GTORCH_FIELD_FIXED, .low = 1,
    .high = G_MAXINT },
  /**
   * GTorchPowerSGD:start-iteration:
   *
   * How many passes exchange the gradients as they are, at the beginning, when they change most.
   *
   * Since: 0.1
   */
  { "start-iteration", GTORCH_FIELD_UINT64, GTORCH_FIELD (GTorchPowerSGD, start_iteration), 1000,
    NULL, GTORCH_FIELD_FIXED },
  /**
   * GTorchPowerSGD:min-compression-rate:
   *
   * How many times fewer numbers P and Q must have than the gradient.
   *
   * Since: 0.1
   */
  { "min-compression-rate", GTORCH_FIELD_DOUBLE,
    GTORCH_FIELD (GTorchPowerSGD, min_compression_rate), 2, NULL, GTORCH_FIELD_FIXED, .low = 0,
    .high = G_MAXDOUBLE },
  /**
   * GTorchPowerSGD:use-error-feedback:
   *
   * Whether what was lost in a pass is added to the gradients of the next one. It takes as much memory as the
   * gradients.
   *
   * Since: 0.1
   */
  { "use-error-feedback", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchPowerSGD, use_error_feedback),
    TRUE, NULL, GTORCH_FIELD_FIXED },
  /**
   * GTorchPowerSGD:warm-start:
   *
   * Whether a pass begins with the matrices Q of the last one, not with random ones.
   *
   * Since: 0.1
   */
  { "warm-start", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchPowerSGD, warm_start), TRUE, NULL,
    GTORCH_FIELD_FIXED },
  /**
   * GTorchPowerSGD:orthogonalization-epsilon:
   *
   * What is added to the lengths of the columns by which they are divided.
   *
   * Since: 0.1
   */
  { "orthogonalization-epsilon", GTORCH_FIELD_DOUBLE,
    GTORCH_FIELD (GTorchPowerSGD, orthogonalization_epsilon), 0, NULL, GTORCH_FIELD_FIXED, .low = 0,
    .high = G_MAXDOUBLE },
  /**
   * GTorchPowerSGD:random-seed:
   *
   * The seed of the first matrices Q; all ranks have the same.
   *
   * Since: 0.1
   */
  { "random-seed", GTORCH_FIELD_UINT64, GTORCH_FIELD (GTorchPowerSGD, random_seed), 0, NULL,
    GTORCH_FIELD_FIXED },
  /**
   * GTorchPowerSGD:iteration:
   *
   * How many passes there have been.
   *
   * Since: 0.1
   */
  { "iteration", GTORCH_PROPERTY_UINT64 (gtorch_power_sgd_get_iteration, NULL) },
};

static void
state_free (gpointer data)
{
  State *state = data;

  g_clear_object (&state->residue);
  g_ptr_array_unref (state->qs);
  g_ptr_array_unref (state->parameters);
  g_free (state);
}

static void
gtorch_power_sgd_constructed (GObject *object)
{
  GTorchPowerSGD *self = GTORCH_POWER_SGD (object);

  self->generator = gtorch_generator_new_with_seed (self->random_seed);
  G_OBJECT_CLASS (gtorch_power_sgd_parent_class)->constructed (object);
}

static void
gtorch_power_sgd_finalize (GObject *object)
{
  GTorchPowerSGD *self = GTORCH_POWER_SGD (object);

  g_hash_table_unref (self->states);
  g_clear_object (&self->generator);
  G_OBJECT_CLASS (gtorch_power_sgd_parent_class)->finalize (object);
}

static void
gtorch_power_sgd_class_init (GTorchPowerSGDClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_power_sgd_constructed;
  G_OBJECT_CLASS (klass)->finalize = gtorch_power_sgd_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_power_sgd_init (GTorchPowerSGD *self)
{
  self->states = g_hash_table_new_full (NULL, NULL, NULL, state_free);
}

/* The gradients of one bucket. */
typedef struct
{
  GTorchProcessGroup *group;
  GPtrArray *matrices; /* views of the buffer that are sent as P and Q */
  GPtrArray *others;   /* those that are not */
  GArray *spans; /* of gint64: where these begin in the buffer, and how many elements they have */
  GPtrArray *ps, *qs; /* as many as matrices */
} Pass;

static void
pass_clear (Pass *pass)
{
  g_ptr_array_unref (pass->matrices);
  g_ptr_array_unref (pass->others);
  g_array_unref (pass->spans);
  g_ptr_array_unref (pass->ps);
  g_ptr_array_unref (pass->qs);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pass, pass_clear)

static gint64
columns_of (const GTorchPowerSGD *self, const GTorchImpl *matrix)
{
  return MIN ((gint64) self->matrix_approximation_rank, MIN (matrix->shape[0], matrix->shape[1]));
}

static gboolean
is_worth_it (const GTorchPowerSGD *self, const GTorchImpl *matrix)
{
  const gdouble n = matrix->shape[0], m = matrix->shape[1];

  return (n + m) * columns_of (self, matrix) * self->min_compression_rate < n * m;
}

static gboolean
sort_gradients (const GTorchPowerSGD *self, Pass *pass, GPtrArray *gradients, GError **error)
{
  gint64 start = 0;
  guint i;

  for (i = 0; i < gradients->len; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_unwrap (gradients->pdata[i]);
      g_autoptr (GTorchTensor) matrix = NULL;

      if (impl->n_dims >= 2 && impl->numel > 0)
        {
          matrix =
              gtorch_tensor_view (gradients->pdata[i], GTORCH_SHAPE (impl->shape[0], -1), error);
          if (matrix == NULL)
            return FALSE;
        }
      if (matrix != NULL && is_worth_it (self, gtorch_tensor_unwrap (matrix)))
        g_ptr_array_add (pass->matrices, g_steal_pointer (&matrix));
      else
        {
          g_ptr_array_add (pass->others, g_object_ref (gradients->pdata[i]));
          g_array_append_val (pass->spans, start);
          g_array_append_val (pass->spans, impl->numel);
        }
      start += impl->numel;
    }
  return TRUE;
}

/* Makes the columns orthogonal and of length 1, one after the other (Gram and Schmidt's way, modified). One
 * of zeros stays so. */
static gboolean
orthogonalize (const GTorchPowerSGD *self, GTorchTensor *matrix, GError **error)
{
  const gint64 n = gtorch_tensor_unwrap (matrix)->shape[1];
  gint64 i;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) column = gtorch_tensor_narrow (matrix, 1, i, 1, error);
      g_autoptr (GTorchTensor) norm =
          column == NULL ? NULL : gtorch_tensor_norm (column, 2, NULL, 0, FALSE, error);
      g_autoptr (GTorchTensor) length =
          norm == NULL ? NULL
          : self->orthogonalization_epsilon > 0
              ? gtorch_tensor_add_scalar (norm, self->orthogonalization_epsilon, 1, error)
              : gtorch_tensor_clamp_min_scalar (norm, 1e-30, error);
      g_autoptr (GTorchTensor) rest = NULL, row = NULL, dots = NULL, parts = NULL;

      if (length == NULL || gtorch_tensor_div_inplace (column, length, error) == NULL)
        return FALSE;
      if (i == n - 1)
        break;
      rest = gtorch_tensor_narrow (matrix, 1, i + 1, n - i - 1, error);
      row = rest == NULL ? NULL : gtorch_tensor_t (column, error);
      dots = row == NULL ? NULL : gtorch_tensor_mm (row, rest, error);
      parts = dots == NULL ? NULL : gtorch_tensor_mm (column, dots, error);
      if (parts == NULL || gtorch_tensor_sub_inplace (rest, parts, 1, error) == NULL)
        return FALSE;
    }
  return TRUE;
}

/* Random numbers are drawn on the CPU: all devices get the same. */
static GTorchTensor *
make_q (GTorchPowerSGD *self, GTorchTensor *matrix, GError **error)
{
  const GTorchImpl *impl = gtorch_tensor_unwrap (matrix);
  g_autoptr (GTorchTensor) drawn =
      gtorch_randn (GTORCH_SHAPE (impl->shape[1], columns_of (self, impl)), GTORCH_DTYPE_FLOAT32,
                    gtorch_device_cpu (), self->generator, error);

  return drawn == NULL ? NULL
                       : gtorch_tensor_to (drawn, impl->dtype, gtorch_tensor_get_device (matrix),
                                           FALSE, FALSE, error);
}

static gboolean
fits (const GTorchPowerSGD *self, const State *state, const Pass *pass)
{
  guint i;

  if (state->qs->len != pass->matrices->len)
    return FALSE;
  for (i = 0; i < state->qs->len; i++)
    {
      const GTorchImpl *q = gtorch_tensor_unwrap (state->qs->pdata[i]);
      const GTorchImpl *matrix = gtorch_tensor_unwrap (pass->matrices->pdata[i]);

      if (q->shape[0] != matrix->shape[1] || q->shape[1] != columns_of (self, matrix)
          || q->dtype != matrix->dtype)
        return FALSE;
    }
  return TRUE;
}

static gboolean
find_qs (GTorchPowerSGD *self, State *state, Pass *pass, GError **error)
{
  const gboolean is_warm = self->warm_start && fits (self, state, pass);
  guint i;

  for (i = 0; i < pass->matrices->len; i++)
    {
      GTorchTensor *q = is_warm ? g_object_ref (state->qs->pdata[i])
                                : make_q (self, pass->matrices->pdata[i], error);

      if (q == NULL)
        return FALSE;
      g_ptr_array_add (pass->qs, q);
      if (!orthogonalize (self, q, error))
        return FALSE;
    }
  return TRUE;
}

/* Copies tensors into one behind each other, or back. */
static gboolean
copy_all (GPtrArray *tensors, GTorchTensor *flat, gboolean is_back, GError **error)
{
  gint64 start = 0;
  guint i;

  for (i = 0; i < tensors->len; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_unwrap (tensors->pdata[i]);
      g_autoptr (GTorchTensor) span = gtorch_tensor_narrow (flat, 0, start, impl->numel, error);
      g_autoptr (GTorchTensor) view =
          span == NULL ? NULL : gtorch_tensor_view (span, impl->shape, impl->n_dims, error);

      if (view == NULL
          || gtorch_tensor_copy_inplace (is_back ? tensors->pdata[i] : view,
                                         is_back ? view : tensors->pdata[i], FALSE, error)
                 == NULL)
        return FALSE;
      start += impl->numel;
    }
  return TRUE;
}

/* The sums of all ranks, of all tensors by one operation: they are small. */
static gboolean
reduce_all (Pass *pass, GPtrArray *tensors, GTorchReduceOp op, GError **error)
{
  GTORCH_GROUP_CALL ("power_sgd");
  g_autoptr (GTorchTensor) flat = NULL;
  g_autoptr (GTorchWork) work = NULL;
  gint64 numel = 0;
  guint i;

  for (i = 0; i < tensors->len; i++)
    numel += gtorch_tensor_get_numel (tensors->pdata[i]);
  if (numel == 0)
    return TRUE;
  flat = gtorch_empty (&numel, 1, gtorch_tensor_get_dtype (tensors->pdata[0]),
                       gtorch_tensor_get_device (tensors->pdata[0]), error);
  if (flat == NULL || !copy_all (tensors, flat, FALSE, error))
    return FALSE;
  work = gtorch_process_group_all_reduce (pass->group, flat, op, error);
  return work != NULL && gtorch_work_join (work, error) && copy_all (tensors, flat, TRUE, error);
}

static gboolean
compress (GTorchPowerSGD *self, Pass *pass, GError **error)
{
  guint i;

  for (i = 0; i < pass->matrices->len; i++)
    {
      GTorchTensor *p = gtorch_tensor_mm (pass->matrices->pdata[i], pass->qs->pdata[i], error);

      if (p == NULL)
        return FALSE;
      g_ptr_array_add (pass->ps, p);
    }
  if (!reduce_all (pass, pass->others, GTORCH_REDUCE_OP_AVG, error)
      || !reduce_all (pass, pass->ps, GTORCH_REDUCE_OP_SUM, error))
    return FALSE;
  g_ptr_array_set_size (pass->qs, 0);
  for (i = 0; i < pass->matrices->len; i++)
    {
      g_autoptr (GTorchTensor) turned = NULL;
      GTorchTensor *q;

      if (!orthogonalize (self, pass->ps->pdata[i], error))
        return FALSE;
      turned = gtorch_tensor_t (pass->matrices->pdata[i], error);
      q = turned == NULL ? NULL : gtorch_tensor_mm (turned, pass->ps->pdata[i], error);
      if (q == NULL)
        return FALSE;
      g_ptr_array_add (pass->qs, q);
    }
  return reduce_all (pass, pass->qs, GTORCH_REDUCE_OP_AVG, error);
}

/* Writes P·Qᵀ to the buffer. */
static gboolean
decompress (Pass *pass, GError **error)
{
  guint i;

  for (i = 0; i < pass->matrices->len; i++)
    {
      g_autoptr (GTorchTensor) turned = gtorch_tensor_t (pass->qs->pdata[i], error);
      g_autoptr (GTorchTensor) product =
          turned == NULL ? NULL : gtorch_tensor_mm (pass->ps->pdata[i], turned, error);

      if (product == NULL
          || gtorch_tensor_copy_inplace (pass->matrices->pdata[i], product, FALSE, error) == NULL)
        return FALSE;
    }
  return TRUE;
}

static gboolean
are_same (const GPtrArray *a, const GPtrArray *b)
{
  return a->len == b->len
         && (a->len == 0 || memcmp (a->pdata, b->pdata, a->len * sizeof (gpointer)) == 0);
}

/* A bucket that has got other parameters begins anew. */
static State *
find_state (GTorchPowerSGD *self, GTorchGradBucket *bucket)
{
  gpointer key = GUINT_TO_POINTER (gtorch_grad_bucket_get_index (bucket));
  g_autoptr (GPtrArray) parameters = gtorch_grad_bucket_get_parameters (bucket);
  State *state = g_hash_table_lookup (self->states, key);

  if (state != NULL && are_same (state->parameters, parameters))
    return state;
  state = g_new0 (State, 1);
  state->qs = g_ptr_array_new_with_free_func (g_object_unref);
  state->parameters = g_steal_pointer (&parameters);
  g_hash_table_insert (self->states, key, state);
  return state;
}

/* Returns what this rank wants to send: the gradients and what is left of the last pass. */
static GTorchTensor *
add_residue (const State *state, GTorchTensor *buffer, GError **error)
{
  if (state->residue != NULL
      && gtorch_tensor_add_inplace (buffer, state->residue, 1, error) == NULL)
    return NULL;
  return gtorch_tensor_clone (buffer, error);
}

/* Keeps what was not sent. What was sent as it is has lost nothing. */
static gboolean
keep_residue (State *state, const Pass *pass, GTorchTensor *wanted, GTorchTensor *buffer,
              GError **error)
{
  guint i;

  if (gtorch_tensor_sub_inplace (wanted, buffer, 1, error) == NULL)
    return FALSE;
  for (i = 0; i < pass->spans->len; i += 2)
    {
      g_autoptr (GTorchTensor) span =
          gtorch_tensor_narrow (wanted, 0, g_array_index (pass->spans, gint64, i),
                                g_array_index (pass->spans, gint64, i + 1), error);

      if (span == NULL || gtorch_tensor_zero_inplace (span, error) == NULL)
        return FALSE;
    }
  g_set_object (&state->residue, wanted);
  return TRUE;
}

static gboolean
run (GTorchPowerSGD *self, GTorchGradBucket *bucket, State *state, GError **error)
{
  GTorchTensor *buffer = gtorch_grad_bucket_get_buffer (bucket);
  g_autoptr (GTorchTensor) wanted = NULL;
  g_autoptr (GPtrArray) gradients = NULL;
  g_auto (Pass) pass = { gtorch_grad_bucket_get_group (bucket),
                         g_ptr_array_new_with_free_func (g_object_unref),
                         g_ptr_array_new_with_free_func (g_object_unref),
                         g_array_new (FALSE, FALSE, sizeof (gint64)),
                         g_ptr_array_new_with_free_func (g_object_unref),
                         g_ptr_array_new_with_free_func (g_object_unref) };
  guint i;

  if (self->use_error_feedback && (wanted = add_residue (state, buffer, error)) == NULL)
    return FALSE;
  gradients = gtorch_grad_bucket_get_gradients (bucket, error);
  if (gradients == NULL || !sort_gradients (self, &pass, gradients, error)
      || !find_qs (self, state, &pass, error) || !compress (self, &pass, error)
      || !decompress (&pass, error)
      || (wanted != NULL && !keep_residue (state, &pass, wanted, buffer, error)))
    return FALSE;
  g_ptr_array_set_size (state->qs, 0);
  for (i = 0; self->warm_start && i < pass.qs->len; i++)
    g_ptr_array_add (state->qs, g_object_ref (pass.qs->pdata[i]));
  return TRUE;
}

/* With other settings the ranks would send matrices of other sizes. */
static gboolean
compare (GTorchPowerSGD *self, GTorchGradBucket *bucket, GError **error)
{
  g_auto (GTorchGroupFacts) facts;

  gtorch_group_facts_init (&facts);
  facts.device = gtorch_tensor_get_device (gtorch_grad_bucket_get_buffer (bucket));
  gtorch_group_facts_add (&facts, "matrix_approximation_rank", "%u",
                          self->matrix_approximation_rank);
  gtorch_group_facts_add (&facts, "start_iteration", "%" PRIu64, self->start_iteration);
  gtorch_group_facts_add (&facts, "the number of passes", "%" PRIu64, self->iteration);
  gtorch_group_facts_add_number (&facts, "min_compression_rate", self->min_compression_rate);
  gtorch_group_facts_add_flag (&facts, "use_error_feedback", self->use_error_feedback);
  gtorch_group_facts_add_flag (&facts, "warm_start", self->warm_start);
  gtorch_group_facts_add_number (&facts, "orthogonalization_epsilon",
                                 self->orthogonalization_epsilon);
  gtorch_group_facts_add (&facts, "random_seed", "%" PRIu64, self->random_seed);
  self->is_compared = gtorch_group_facts_compare (&facts, gtorch_grad_bucket_get_group (bucket),
                                                  "power_sgd", error);
  return self->is_compared;
}

/**
 * gtorch_power_sgd_new:
 * @matrix_approximation_rank: how many columns the matrices have, 1 or more
 * @start_iteration: how many passes exchange the gradients as they are
 * @error: return location for an error
 *
 * Creates an object that exchanges gradients as matrices of low rank, with the other settings at their
 * defaults.
 *
 * Returns: (transfer full): a new object, or %NULL with %GTORCH_ERROR_INVALID if
 *   @matrix_approximation_rank is out of range
 *
 * Since: 0.1
 */
GTorchPowerSGD *
gtorch_power_sgd_new (guint matrix_approximation_rank, guint64 start_iteration, GError **error)
{
  if (matrix_approximation_rank >= 1 && matrix_approximation_rank <= G_MAXINT)
    return g_object_new (GTORCH_TYPE_POWER_SGD, "matrix-approximation-rank",
                         matrix_approximation_rank, "start-iteration", start_iteration, NULL);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("power_sgd: the matrices have %u columns; they have 1 or more, and at most %d"),
               matrix_approximation_rank, G_MAXINT);
  return NULL;
}

/**
 * gtorch_power_sgd_get_iteration:
 * @self: an object
 *
 * Gets how many passes there have been.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint64
gtorch_power_sgd_get_iteration (GTorchPowerSGD *self)
{
  g_return_val_if_fail (GTORCH_IS_POWER_SGD (self), 0);
  return self->iteration;
}

/**
 * gtorch_power_sgd_average:
 * @self: an object
 * @bucket: gradients
 * @error: return location for an error
 *
 * Computes the mean of the gradients of all ranks, as far as matrices of low rank have it. The bucket's
 * buffer becomes the mean. For a function of [method@DistributedModule.register_comm_hook].
 *
 * Returns: (transfer full): the bucket's buffer, or %NULL with @error set: %GTORCH_ERROR_DTYPE if it is not
 *   of float32 or float64, %GTORCH_ERROR_SHAPE if the objects of the ranks have other settings
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_power_sgd_average (GTorchPowerSGD *self, GTorchGradBucket *bucket, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchTensor *buffer;
  GTorchDType dtype;

  g_return_val_if_fail (GTORCH_IS_POWER_SGD (self) && GTORCH_IS_GRAD_BUCKET (bucket), NULL);
  buffer = gtorch_grad_bucket_get_buffer (bucket);
  if (buffer != NULL && !self->is_compared && !compare (self, bucket, error))
    return NULL;
  if (gtorch_grad_bucket_is_last (bucket))
    self->iteration++;
  if (buffer == NULL || self->iteration <= self->start_iteration)
    return gtorch_grad_bucket_average (bucket, GTORCH_DTYPE_NONE, error);
  dtype = gtorch_tensor_get_dtype (buffer);
  if (dtype != GTORCH_DTYPE_FLOAT32 && dtype != GTORCH_DTYPE_FLOAT64)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("power_sgd: the gradients are of %s; they are of float32 or float64"),
                   gtorch_dtype_infos[dtype].name);
      return NULL;
    }
  guard = gtorch_no_grad ();
  return run (self, bucket, find_state (self, bucket), error) ? g_object_ref (buffer) : NULL;
}
