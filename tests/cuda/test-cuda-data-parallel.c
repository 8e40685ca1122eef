/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* One module on several GPUs of a process. */

#include "config.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtorch/tensor/gtorch-tensor-private.h>

#include "cuda-test.h"

#define N_GPUS 3

static gint n_ended; /* threads of replicas; atomic */

static void
count_ended (gpointer data)
{
  g_atomic_int_inc (&n_ended);
}

static GPrivate ending = G_PRIVATE_INIT (count_ended);

/* --- a class of the program's own --- */

typedef enum
{
  PLAIN,
  CHECKPOINT,
  REENTRANT,
  SEQUENTIAL,
} Calling;

typedef struct
{
  GTorchModule parent_instance;
  GTorchModule *layer;
  GThread *threads[N_GPUS]; /* that called it, by device */
  GTorchDevice *current[N_GPUS];
  GTorchStream *streams[N_GPUS]; /* current ones; only compared */
  gboolean grads[N_GPUS];
  gint failing;    /* on this device it fails */
  Calling calling; /* how it calls the layer */
} TestNet;

typedef GTorchModuleClass TestNetClass;

static GType test_net_get_type (void);

G_DEFINE_TYPE (TestNet, test_net, GTORCH_TYPE_MODULE)

static GTorchTensor *
call_layer (TestNet *self, GTorchTensor *input, GError **error)
{
  GTorchModule *twice[] = { self->layer, self->layer };

  return self->calling == PLAIN ? gtorch_module_forward (self->layer, input, error)
         : self->calling == SEQUENTIAL
             ? gtorch_checkpoint_sequential (twice, 2, 2, input, FALSE, TRUE, error)
             : gtorch_module_checkpoint (self->layer, &input, 1, self->calling == REENTRANT, TRUE,
                                         TRUE, TRUE, error);
}

/* The layer's output times a second input, if there is one. */
static GTorchTensor *
test_net_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  TestNet *self = (TestNet *) module;
  g_autoptr (GTorchTensor) output = call_layer (self, inputs[0], error);
  const gint index = gtorch_device_get_index (gtorch_tensor_get_device (inputs[0]));

  self->threads[index] = g_thread_self ();
  self->current[index] = gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, NULL);
  self->streams[index] = gtorch_stream_get_current (gtorch_tensor_get_device (inputs[0]));
  self->grads[index] = gtorch_is_grad_enabled ();
  if (index > 0)
    g_private_set (&ending, self);
  if (index == self->failing)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "net: this one fails");
      return NULL;
    }
  return output == NULL || n_inputs == 1 ? g_steal_pointer (&output)
                                         : gtorch_tensor_mul (output, inputs[1], error);
}

static GTorchTensor *
test_net_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return test_net_forward_many (module, &input, 1, error);
}

static void
test_net_finalize (GObject *object)
{
  g_clear_object (&((TestNet *) object)->layer);
  G_OBJECT_CLASS (test_net_parent_class)->finalize (object);
}

static void
test_net_class_init (TestNetClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = test_net_finalize;
  klass->forward = test_net_forward;
  klass->forward_many = test_net_forward_many;
}

static void
test_net_init (TestNet *self)
{
  self->failing = -1;
}

/* On the first GPU. */
static TestNet *
make_net (GTorchModule *layer)
{
  TestNet *self = g_object_new (test_net_get_type (), NULL);
  g_autoptr (GError) error = NULL;

  self->layer = layer;
  g_assert_true (
      gtorch_module_register_module (GTORCH_MODULE (self), "layer", self->layer, &error));
  g_assert_true (gtorch_module_to (GTORCH_MODULE (self), gpu (0), GTORCH_DTYPE_NONE, &error));
  g_assert_no_error (error);
  return self;
}

static GTorchModule *
batch_norm (void)
{
  g_autoptr (GError) error = NULL;
  GTorchModule *norm =
      gtorch_module_new (GTORCH_TYPE_BATCH_NORM1D, &error, "num-features", (gint64) 2, NULL);

  g_assert_no_error (error);
  return norm;
}

/* A weight and a bias for each of two channels, without products of matrices. */
static GTorchModule *
scale (void)
{
  g_autoptr (GError) error = NULL;
  GTorchModule *norm = gtorch_module_new (GTORCH_TYPE_GROUP_NORM, &error, "num-groups", (gint64) 1,
                                          "num-channels", (gint64) 2, NULL);

  g_assert_no_error (error);
  return norm;
}

static GTorchDevice **
all (void)
{
  static GTorchDevice *devices[N_GPUS];
  guint i;

  for (i = 0; i < N_GPUS; i++)
    devices[i] = gpu (i);
  return devices;
}

/* --- comparing --- */

static GTorchTensor *
rows (gint64 n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_arange (0, 2 * n, 1, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error);
  g_autoptr (GTorchTensor) wave = gtorch_tensor_sin (x, &error);
  GTorchTensor *result = gtorch_tensor_view (wave, GTORCH_SHAPE (n, 2), &error);

  g_assert_no_error (error);
  return result;
}

static void
assert_near (GTorchTensor *a, GTorchTensor *b)
{
  g_autofree gdouble *these = read_doubles (gtorch_tensor_unwrap (a));
  g_autofree gdouble *those = read_doubles (gtorch_tensor_unwrap (b));
  gint64 i;

  g_assert_true (gtorch_impl_same_shape (gtorch_tensor_unwrap (a), gtorch_tensor_unwrap (b)));
  for (i = 0; i < gtorch_tensor_unwrap (a)->numel; i++)
    g_assert_cmpfloat_with_epsilon (these[i], those[i], 1e-5);
}

static void
go_backward (GTorchTensor *output)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) square = gtorch_tensor_square (output, &error);
  g_autoptr (GTorchTensor) loss =
      gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);

  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
}

static GTorchTensor *
weight_grad (GTorchModule *module)
{
  g_autoptr (GListModel) params = gtorch_module_get_parameters (module, TRUE);
  g_autoptr (GTorchTensor) weight = g_list_model_get_item (params, 0);
  GTorchTensor *grad = gtorch_tensor_get_grad (weight);

  g_assert_nonnull (grad);
  return grad;
}

/* The output of the module for the whole batch, on the first GPU; sets the gradient of its weight. */
static GTorchTensor *
compute_alone (GTorchModule *module, GTorchTensor *batch, GTorchTensor **grad)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) input = gtorch_tensor_to_device (batch, gpu (0), FALSE, &error);
  GTorchTensor *output = gtorch_module_forward (module, input, &error);

  g_assert_no_error (error);
  go_backward (output);
  *grad = weight_grad (module);
  g_assert_true (gtorch_module_zero_grad (module, TRUE, &error));
  return output;
}

/* --- calls --- */

static void
batches_are_divided (void)
{
  g_autoptr (GError) error = NULL;
  TestNet *net = make_net (scale ());
  g_autoptr (GTorchModule) module = GTORCH_MODULE (net);
  g_autoptr (GTorchDataParallel) model =
      gtorch_data_parallel_new (module, all (), N_GPUS, gpu (2), 0, &error);
  g_autoptr (GTorchTensor) batch = rows (7);
  g_autoptr (GTorchTensor) output = NULL, alone = NULL, grad = NULL, wanted = NULL;
  gsize n;

  g_assert_no_error (error);
  output = gtorch_module_forward (GTORCH_MODULE (model), batch, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_device (output) == gpu (2));
  go_backward (output);
  grad = weight_grad (module);
  g_assert_true (net->threads[0] == g_thread_self () && net->threads[1] != g_thread_self ());
  g_assert_true (net->threads[2] != g_thread_self () && net->threads[1] != net->threads[2]);
  g_assert_true (net->current[1] == gpu (1) && net->current[2] == gpu (2));
  g_assert_true (gtorch_module_zero_grad (module, TRUE, &error));
  alone = compute_alone (module, batch, &wanted);
  assert_near (output, alone);
  assert_near (grad, wanted);
  g_assert_true (gtorch_data_parallel_get_wrapped (model) == module);
  g_assert_true (gtorch_data_parallel_get_output_device (model) == gpu (2));
  g_assert_cmpint (gtorch_data_parallel_get_dim (model), ==, 0);
  g_assert_cmpint (gtorch_size_get_values (gtorch_data_parallel_get_device_ids (model), &n)[2], ==,
                   2);
  g_assert_cmpuint (n, ==, N_GPUS);
}

static void
settings_are_those_of_the_caller (void)
{
  g_autoptr (GError) error = NULL;
  TestNet *net = make_net (scale ());
  g_autoptr (GTorchModule) module = GTORCH_MODULE (net);
  g_autoptr (GTorchTensor) batch = rows (3), short_batch = rows (2), single = rows (1);
  g_autoptr (GTorchTensor) output = NULL, few = NULL, one = NULL;
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

  output = gtorch_data_parallel_call (module, &batch, 1, NULL, 0, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_device (output) == gpu (0));
  g_assert_false (net->grads[1] || net->grads[2] || gtorch_tensor_get_requires_grad (output));
  net->threads[1] = net->threads[2] = NULL;
  few = gtorch_data_parallel_call (module, &short_batch, 1, NULL, 0, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_true (net->threads[1] != NULL && net->threads[2] == NULL);
  one = gtorch_data_parallel_call (module, &single, 1, NULL, 0, gtorch_device_cpu (), 0, &error);
  g_assert_true (gtorch_tensor_get_device (one) == gtorch_device_cpu ());
}

static void
several_inputs_are_divided (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) module = GTORCH_MODULE (make_net (scale ()));
  g_autoptr (GTorchTensor) a = rows (5), b = rows (5), c = rows (2);
  GTorchTensor *inputs[] = { a, b }, *uneven[] = { a, c };
  g_autoptr (GTorchTensor) output =
      gtorch_data_parallel_call (module, inputs, 2, all (), 2, NULL, 0, &error);
  g_autoptr (GTorchTensor) x = NULL, plain = NULL, wanted = NULL;

  g_assert_no_error (error);
  x = gtorch_tensor_to_device (a, gpu (0), FALSE, &error);
  inputs[0] = inputs[1] = x;
  wanted = gtorch_module_forward_many (module, inputs, 2, &error);
  assert_near (output, wanted);
  g_assert_null (gtorch_data_parallel_call (module, uneven, 2, all (), 3, NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "data_parallel: input 1, of shape [2, 2], makes up 2 parts for 3 devices, and "
                   "the first one, of shape [5, 2], 3");
}

static GTorchTensor *
sum_up (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
        gpointer data, GError **error)
{
  (*(guint *) data)++;
  return gtorch_tensor_sum (output, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
}

/* A hook may be a function of a language that has one thread. It sees the module itself. */
static void
hooks_run_in_the_calling_thread (void)
{
  g_autoptr (GError) error = NULL;
  TestNet *net = make_net (scale ());
  g_autoptr (GTorchModule) module = GTORCH_MODULE (net);
  g_autoptr (GTorchTensor) batch = rows (6), output = NULL, grad = NULL;
  guint n_calls = 0, i;

  gtorch_module_register_forward_hook (module, sum_up, &n_calls, NULL);
  output = gtorch_data_parallel_call (module, &batch, 1, all (), N_GPUS, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n_calls, ==, N_GPUS);
  for (i = 0; i < N_GPUS; i++)
    g_assert_true (net->threads[i] == g_thread_self ());
  /* numbers become a vector */
  g_assert_cmpint (gtorch_tensor_unwrap (output)->n_dims, ==, 1);
  g_assert_cmpint (gtorch_tensor_unwrap (output)->numel, ==, N_GPUS);
  go_backward (output);
  grad = weight_grad (module);
}

/* --- threads --- */

static GTorchTensor *
call_model (GTorchDataParallel *model, gint64 n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) batch = rows (n);
  GTorchTensor *output = gtorch_module_forward (GTORCH_MODULE (model), batch, &error);

  g_assert_no_error (error);
  return output;
}

/* Each call has the settings of its caller, which the threads do not keep. */
static void
threads_are_kept (void)
{
  g_autoptr (GError) error = NULL;
  TestNet *net = make_net (scale ());
  g_autoptr (GTorchModule) module = GTORCH_MODULE (net);
  g_autoptr (GTorchDataParallel) model =
      gtorch_data_parallel_new (module, all (), N_GPUS, NULL, 0, &error);
  g_autoptr (GTorchTensor) first = call_model (model, 6), second = NULL, third = NULL, few = NULL;
  GThread *threads[N_GPUS];

  g_assert_no_error (error);
  memcpy (threads, net->threads, sizeof threads);
  g_assert_true (gtorch_tensor_get_requires_grad (first) && net->grads[1] && net->grads[2]);
  g_assert_true (gtorch_stream_is_default (net->streams[1]));
  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
    g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (1), 0, &error);
    g_autoptr (GTorchStreamGuard) streams = gtorch_stream_guard_new (stream);

    g_assert_no_error (error);
    second = call_model (model, 6);
    g_assert_false (gtorch_tensor_get_requires_grad (second) || net->grads[1] || net->grads[2]);
    g_assert_true (net->streams[1] == stream);
  }
  net->failing = 2;
  {
    g_autoptr (GTorchTensor) batch = rows (6);

    g_assert_null (gtorch_module_forward (GTORCH_MODULE (model), batch, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  }
  net->failing = -1;
  third = call_model (model, 9);
  g_assert_true (gtorch_tensor_get_requires_grad (third) && net->grads[1] && net->grads[2]);
  g_assert_true (gtorch_stream_is_default (net->streams[1]));
  few = call_model (model, 2);
  g_assert_cmpmem (threads, sizeof threads, net->threads, sizeof threads);
  g_assert_true (threads[1] != threads[2] && threads[1] != threads[0]);
  g_atomic_int_set (&n_ended, 0);
  g_clear_object (&model);
  g_assert_cmpint (g_atomic_int_get (&n_ended), ==, 2);
}

static gpointer
call_often (gpointer model)
{
  gint i;

  for (i = 0; i < 10; i++)
    g_object_unref (call_model (model, 6));
  return NULL;
}

static void
several_threads_call_one_module (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) module = scale ();
  g_autoptr (GTorchDataParallel) model = NULL;
  GThread *threads[3];
  guint i;

  g_assert_true (gtorch_module_to (module, gpu (0), GTORCH_DTYPE_NONE, &error));
  model = gtorch_data_parallel_new (module, all (), N_GPUS, NULL, 0, &error);
  g_assert_no_error (error);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("caller", call_often, model);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

/* The child of a fork has none of the threads, and waits for none. */
static void
children_have_no_threads (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) module = GTORCH_MODULE (make_net (scale ()));
  g_autoptr (GTorchDataParallel) model =
      gtorch_data_parallel_new (module, all (), N_GPUS, NULL, 0, &error);
  g_autoptr (GTorchTensor) output = call_model (model, 6), again = NULL;
  gint status;
  pid_t child;

  child = fork ();
  if (child == 0)
    {
      alarm (20);
      g_object_unref (model);
      _exit (0);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_cmpint (status, ==, 0);
  again = call_model (model, 6);
  assert_near (again, output);
}

/* --- replicas --- */

static void
buffers_are_those_of_the_first_device (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) module = GTORCH_MODULE (make_net (batch_norm ()));
  g_autoptr (GTorchTensor) batch = rows (6), output = NULL, mean = NULL, count = NULL;
  g_autofree gdouble *numbers = NULL, *counts = NULL;
  gdouble wanted = (sin (0) + sin (2)) / 2;

  output = gtorch_data_parallel_call (module, &batch, 1, all (), N_GPUS, NULL, 0, &error);
  g_assert_no_error (error);
  go_backward (output);
  mean = gtorch_module_get_buffer (module, "layer.running_mean", &error);
  count = gtorch_module_get_buffer (module, "layer.num_batches_tracked", &error);
  g_assert_no_error (error);
  numbers = read_doubles (gtorch_tensor_unwrap (mean));
  counts = read_doubles (gtorch_tensor_unwrap (count));
  g_assert_cmpfloat_with_epsilon (numbers[0], 0.1 * wanted, 1e-6);
  g_assert_cmpfloat (counts[0], ==, 1);
}

static void
replicas_have_copies (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) module = GTORCH_MODULE (make_net (scale ()));
  g_autoptr (GPtrArray) replicas = gtorch_replicate (module, all (), 2, FALSE, &error);
  g_autoptr (GPtrArray) apart = NULL, parts = NULL, outputs = NULL, computed = NULL;
  g_autoptr (GTorchTensor) batch = rows (4), grad = NULL;
  g_autoptr (GListModel) params = NULL;

  g_assert_no_error (error);
  g_assert_true (replicas->pdata[0] == module && replicas->pdata[1] != module);
  params = gtorch_module_get_parameters (replicas->pdata[1], TRUE);
  g_assert_cmpuint (g_list_model_get_n_items (params), ==, 0);
  parts = gtorch_comm_scatter (batch, all (), 2, NULL, 0, 0, NULL, 0, &error);
  outputs = gtorch_parallel_apply ((GTorchModule **) replicas->pdata, 2,
                                   (GTorchTensor **) parts->pdata, 2, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_device (outputs->pdata[1]) == gpu (1));
  go_backward (outputs->pdata[1]);
  grad = weight_grad (module);
  apart = gtorch_replicate (module, all (), 2, TRUE, &error);
  g_assert_true (apart->pdata[0] != module);
  computed = gtorch_parallel_apply ((GTorchModule **) apart->pdata, 2,
                                    (GTorchTensor **) parts->pdata, 2, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_tensor_get_requires_grad (computed->pdata[0])
                  || gtorch_tensor_get_requires_grad (computed->pdata[1]));
  assert_near (computed->pdata[1], outputs->pdata[1]);
}

/* What a layer computes from other parameters is computed from the copies. */
static void
computed_weights_have_replicas (gconstpointer is_parametrized)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) inner = scale ();
  g_autoptr (GTorchModule) module = NULL;
  g_autoptr (GTorchTensor) batch = rows (4), output = NULL, alone = NULL, grad = NULL;
  g_autoptr (GTorchTensor) wanted = NULL;

  g_assert_true (is_parametrized
                     ? gtorch_module_parametrize_weight_norm (inner, "weight", 0, &error)
                     : gtorch_module_apply_weight_norm (inner, "weight", 0, &error));
  g_assert_no_error (error);
  module = GTORCH_MODULE (make_net (g_steal_pointer (&inner)));
  alone = compute_alone (module, batch, &wanted);
  for (((TestNet *) module)->calling = PLAIN; ((TestNet *) module)->calling <= CHECKPOINT;
       ((TestNet *) module)->calling++)
    {
      g_clear_object (&output);
      g_clear_object (&grad);
      output = gtorch_data_parallel_call (module, &batch, 1, all (), 2, NULL, 0, &error);
      g_assert_no_error (error);
      go_backward (output);
      grad = weight_grad (module);
      g_assert_true (gtorch_module_zero_grad (module, TRUE, &error));
      assert_near (output, alone);
      assert_near (grad, wanted);
    }
}

/* --- checkpoints --- */

/* Returns the output of the module on all GPUs, and sets gradients. */
static GTorchTensor *
compute_divided (TestNet *net, Calling calling, GTorchTensor **weight, GTorchTensor **input)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) batch = rows (8);
  GTorchModule *module = GTORCH_MODULE (net);
  GTorchTensor *output;

  net->calling = calling;
  g_assert_true (gtorch_tensor_set_requires_grad (batch, TRUE, &error));
  output = gtorch_data_parallel_call (module, &batch, 1, all (), N_GPUS, NULL, 0, &error);
  g_assert_no_error (error);
  go_backward (output);
  *weight = weight_grad (module);
  *input = gtorch_tensor_get_grad (batch);
  g_assert_true (gtorch_module_zero_grad (module, TRUE, &error));
  return output;
}

static void
assert_same_bits (GTorchTensor *a, GTorchTensor *b)
{
  g_autofree gdouble *these = read_doubles (gtorch_tensor_unwrap (a));
  g_autofree gdouble *those = read_doubles (gtorch_tensor_unwrap (b));

  g_assert_true (gtorch_impl_same_shape (gtorch_tensor_unwrap (a), gtorch_tensor_unwrap (b)));
  g_assert_cmpmem (these, gtorch_tensor_unwrap (a)->numel * sizeof *these, those,
                   gtorch_tensor_unwrap (b)->numel * sizeof *those);
}

static GPtrArray *
never (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  g_assert_not_reached ();
}

/* The second calls, in the thread of the backward pass, compute with the tensors of the replicas. */
static void
checkpoints_have_the_tensors_of_the_replica (void)
{
  /* here GObject makes the class, whose locks ThreadSanitizer does not see */
  g_autoptr (GTorchFunction) unused = gtorch_checkpoint_function_new (never, NULL, NULL, FALSE);
  TestNet *net = make_net (scale ());
  g_autoptr (GTorchModule) module = GTORCH_MODULE (net);
  g_autoptr (GTorchTensor) weight = NULL, input = NULL;
  g_autoptr (GTorchTensor) output = compute_divided (net, PLAIN, &weight, &input);
  g_autoptr (GTorchTensor) one_weight = NULL, one_input = NULL, one_output = NULL;
  g_autoptr (GTorchTensor) twice_weight = NULL, twice_input = NULL, twice_output = NULL;
  g_autoptr (GTorchTensor) alone = NULL, alone_weight = NULL, batch = rows (8);
  Calling calling;

  for (calling = CHECKPOINT; calling <= REENTRANT; calling++)
    {
      g_clear_object (&one_weight);
      g_clear_object (&one_input);
      g_clear_object (&one_output);
      one_output = compute_divided (net, calling, &one_weight, &one_input);
      g_assert_true (net->threads[1] != g_thread_self ());
      assert_same_bits (one_output, output);
      assert_same_bits (one_input, input);
      /* a backward pass of its own adds to the parameters for each replica */
      if (calling == REENTRANT)
        assert_near (one_weight, weight);
      else
        assert_same_bits (one_weight, weight);
    }
  twice_output = compute_divided (net, SEQUENTIAL, &twice_weight, &twice_input);
  alone = compute_alone (module, batch, &alone_weight);
  assert_near (twice_output, alone);
  assert_near (twice_weight, alone_weight);
}

/* The layer writes to its buffers when it is called, which are copies in a replica. */
static void
checkpoints_have_the_buffers_of_the_replica (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) module = GTORCH_MODULE (make_net (batch_norm ()));
  g_autoptr (GTorchTensor) count = NULL, weight = NULL, input = NULL, wanted = NULL, other = NULL;
  g_autoptr (GTorchTensor) output = NULL, plain = NULL;
  g_autofree gdouble *counts = NULL;

  output = compute_divided ((TestNet *) module, CHECKPOINT, &weight, &input);
  count = gtorch_module_get_buffer (module, "layer.num_batches_tracked", &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_device (count) == gpu (0));
  counts = read_doubles (gtorch_tensor_unwrap (count));
  g_assert_cmpfloat (counts[0], ==, 1); /* the second call ends before it counts */
  plain = compute_divided ((TestNet *) module, PLAIN, &wanted, &other);
  assert_same_bits (output, plain);
  assert_same_bits (weight, wanted);
  assert_same_bits (input, other);
}

/* The copies stay until the backward pass, when the replicas are gone, and no longer. */
static void
checkpoints_keep_the_tensors_of_the_replica (void)
{
  TestNet *net = make_net (scale ());
  g_autoptr (GTorchModule) module = GTORCH_MODULE (net);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) batch = rows (4), output = NULL;
  g_autoptr (GPtrArray) replicas = NULL;
  gpointer replica;

  net->calling = CHECKPOINT;
  replicas = gtorch_replicate (module, all (), 2, FALSE, &error);
  g_assert_no_error (error);
  {
    g_autoptr (GTorchTensor) there = gtorch_tensor_to_device (batch, gpu (1), FALSE, &error);

    output = gtorch_module_forward (replicas->pdata[1], there, &error);
    g_assert_no_error (error);
  }
  replica = replicas->pdata[1];
  g_object_add_weak_pointer (replica, &replica);
  g_clear_pointer (&replicas, g_ptr_array_unref);
  g_assert_null (replica);
  go_backward (output);
  g_object_unref (weight_grad (module));
  g_clear_object (&output);
}

/* --- what is refused --- */

static void
errors_name_the_device (void)
{
  g_autoptr (GError) error = NULL;
  TestNet *net = make_net (scale ());
  g_autoptr (GTorchModule) module = GTORCH_MODULE (net);
  g_autoptr (GTorchTensor) batch = rows (6);

  net->failing = 1;
  g_assert_null (gtorch_data_parallel_call (module, &batch, 1, all (), N_GPUS, NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "data_parallel: on cuda:1: net: this one fails");
}

static void
assert_refused (GTorchModule *module, GTorchDevice **devices, gsize n_devices, gint code,
                const gchar *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) batch = rows (6);

  g_assert_null (
      gtorch_data_parallel_call (module, &batch, 1, devices, n_devices, NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_cmpstr (error->message, ==, text);
}

static void
bad_modules_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) module = GTORCH_MODULE (make_net (scale ()));
  g_autoptr (GTorchModule) empty = g_object_new (GTORCH_TYPE_DATA_PARALLEL, NULL);
  g_autoptr (GTorchModule) lazy = NULL;
  g_autoptr (GTorchDataParallel) model = NULL, outer = NULL;
  g_autoptr (GTorchTensor) batch = rows (6);
  GTorchDevice *twice[] = { gpu (0), gpu (0) };

  assert_refused (module, all () + 1, 2, GTORCH_ERROR_DEVICE_MISMATCH,
                  "data_parallel: the module must be on cuda:1, the first of the devices, but has "
                  "a parameter or buffer on cuda:0");
  assert_refused (module, twice, 2, GTORCH_ERROR_INVALID,
                  "data_parallel: cuda:0 is there twice; a device has one replica");
  model = gtorch_data_parallel_new (module, all (), 2, NULL, 0, &error);
  assert_refused (GTORCH_MODULE (model), all (), 2, GTORCH_ERROR_NOT_SUPPORTED,
                  "data_parallel: replicate: DataParallel “” has one device only, since it calls "
                  "other processes, has replicas itself, or was captured: it cannot have replicas");
  g_assert_null (gtorch_module_forward (empty, batch, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "data_parallel: there is no module inside");
  g_clear_error (&error);
  g_assert_null (gtorch_parallel_apply (&module, 1, NULL, 0, NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
one_device_has_the_module (void)
{
  GTorchDevice *device = gpu (1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) module = scale ();
  g_autoptr (GTorchDataParallel) model =
      gtorch_data_parallel_new (module, &device, 1, NULL, 0, &error);
  g_autoptr (GTorchTensor) batch = rows (3), output = NULL;
  g_autoptr (GTorchParameter) weight = NULL;

  g_assert_no_error (error);
  weight = gtorch_module_get_parameter (GTORCH_MODULE (model), "module.weight", &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_device (GTORCH_TENSOR (weight)) == device);
  output = gtorch_module_forward (GTORCH_MODULE (model), batch, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_device (output) == device);
}

int
main (int argc, char **argv)
{
  int result;

#define ADD(name) g_test_add_func ("/GTorch/CUDA/data-parallel/" #name, name)
  g_test_init (&argc, &argv, NULL);
  ADD (batches_are_divided);
  ADD (settings_are_those_of_the_caller);
  ADD (several_inputs_are_divided);
  ADD (hooks_run_in_the_calling_thread);
  ADD (threads_are_kept);
  ADD (several_threads_call_one_module);
  ADD (children_have_no_threads);
  ADD (buffers_are_those_of_the_first_device);
  ADD (replicas_have_copies);
  g_test_add_data_func ("/GTorch/CUDA/data-parallel/computed_weights_have_replicas", NULL,
                        computed_weights_have_replicas);
  g_test_add_data_func ("/GTorch/CUDA/data-parallel/parametrizations_have_replicas",
                        GINT_TO_POINTER (TRUE), computed_weights_have_replicas);
  ADD (checkpoints_have_the_tensors_of_the_replica);
  ADD (checkpoints_have_the_buffers_of_the_replica);
  ADD (checkpoints_keep_the_tensors_of_the_replica);
  ADD (errors_name_the_device);
  ADD (bad_modules_are_refused);
  ADD (one_device_has_the_module);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
