/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

#include <gtorch/base/gtorch-version-macros.h>

G_BEGIN_DECLS

/* Every public typedef lives here, so that no two headers need each other. */
typedef struct _GTorchAllocator GTorchAllocator;
typedef struct _GTorchAutocastGuard GTorchAutocastGuard;
typedef struct _GTorchDevice GTorchDevice;
typedef struct _GTorchDefaultDeviceGuard GTorchDefaultDeviceGuard;
typedef struct _GTorchDeviceGuard GTorchDeviceGuard;
typedef struct _GTorchDeviceManager GTorchDeviceManager;
typedef struct _GTorchDeviceMonitor GTorchDeviceMonitor;
typedef struct _GTorchDeviceProcess GTorchDeviceProcess;
typedef struct _GTorchMemoryBlock GTorchMemoryBlock;
typedef struct _GTorchMemoryPool GTorchMemoryPool;
typedef struct _GTorchMemoryPoolGuard GTorchMemoryPoolGuard;
typedef struct _GTorchMemorySource GTorchMemorySource;
typedef struct _GTorchStream GTorchStream;
typedef struct _GTorchStreamGuard GTorchStreamGuard;
typedef struct _GTorchEvent GTorchEvent;
typedef struct _GTorchFFTPlanCache GTorchFFTPlanCache;
typedef struct _GTorchFunction GTorchFunction;
typedef struct _GTorchFunctionContext GTorchFunctionContext;
typedef struct _GTorchGenerator GTorchGenerator;
typedef struct _GTorchHostAllocator GTorchHostAllocator;
typedef struct _GTorchReferences GTorchReferences;
typedef struct _GTorchScope GTorchScope;
typedef struct _GTorchTensorIter GTorchTensorIter;
typedef struct _GTorchTensor GTorchTensor;
typedef struct _GTorchTimer GTorchTimer;
typedef struct _GTorchCUDAGraph GTorchCUDAGraph;
typedef struct _GTorchGraphCapture GTorchGraphCapture;
typedef struct _GTorchModule GTorchModule;
typedef struct _GTorchOptimizer GTorchOptimizer;
typedef struct _GTorchParamGroup GTorchParamGroup;
typedef struct _GTorchProfileList GTorchProfileList;
typedef struct _GTorchProfileRange GTorchProfileRange;
typedef struct _GTorchProfileRow GTorchProfileRow;
typedef struct _GTorchProfiler GTorchProfiler;
typedef struct _GTorchParameter GTorchParameter;

G_END_DECLS
