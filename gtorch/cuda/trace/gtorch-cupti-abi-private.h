/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The part of CUPTI's binary interface that GTorch uses, so that it builds without NVIDIA's toolkit. Names and
 * values are those of its reference; of records the beginning is declared, which versions 12 and 13 have in
 * common. tests/cuda/cupti-values.h lists them, and a test compares both headers where a toolkit is
 * installed. */

#include <stddef.h>
#include <stdint.h>

typedef enum
{
  CUPTI_SUCCESS = 0,
  CUPTI_ERROR_INVALID_PARAMETER = 1,
  CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
  CUPTI_ERROR_QUEUE_EMPTY = 18,
} CUptiResult;

typedef enum
{
  CUPTI_ACTIVITY_KIND_INVALID = 0,
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_DRIVER = 4,
  CUPTI_ACTIVITY_KIND_RUNTIME = 5,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_MEMCPY2 = 22,
  CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 39,
} CUpti_ActivityKind;

typedef enum
{
  CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1 << 0,
} CUpti_ActivityFlag;

typedef enum
{
  CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 = 5,
} CUpti_ExternalCorrelationKind;

typedef enum
{
  CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM = 1,
} CUpti_ActivityThreadIdType;

typedef enum
{
  CUPTI_CB_DOMAIN_DRIVER_API = 1,
  CUPTI_CB_DOMAIN_RUNTIME_API = 2,
} CUpti_CallbackDomain;

typedef enum
{
  CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8,
  CUPTI_ACTIVITY_MEMCPY_KIND_HTOH = 9,
  CUPTI_ACTIVITY_MEMCPY_KIND_PTOP = 10,
} CUpti_ActivityMemcpyKind;

typedef enum
{
  CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE = 1,
  CUPTI_ACTIVITY_MEMORY_KIND_PINNED = 2,
  CUPTI_ACTIVITY_MEMORY_KIND_DEVICE = 3,
  CUPTI_ACTIVITY_MEMORY_KIND_MANAGED = 5,
} CUpti_ActivityMemoryKind;

struct CUctx_st;

#define CUPTI_RECORD __attribute__ ((__packed__)) __attribute__ ((aligned (8)))

typedef struct CUPTI_RECORD
{
  CUpti_ActivityKind kind;
} CUpti_Activity;

typedef struct CUPTI_RECORD
{
  CUpti_ActivityKind kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
} CUpti_ActivityMemcpy5;

typedef struct CUPTI_RECORD
{
  CUpti_ActivityKind kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t srcDeviceId;
  uint32_t srcContextId;
  uint32_t dstDeviceId;
  uint32_t dstContextId;
  uint32_t correlationId;
} CUpti_ActivityMemcpyPtoP4;

typedef struct CUPTI_RECORD
{
  CUpti_ActivityKind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
  uint16_t flags;
  uint16_t memoryKind;
} CUpti_ActivityMemset4;

typedef struct CUPTI_RECORD
{
  CUpti_ActivityKind kind;
  uint8_t cacheConfig;
  uint8_t sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedGlobalCacheRequested;
  uint32_t partitionedGlobalCacheExecuted;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  int32_t gridX;
  int32_t gridY;
  int32_t gridZ;
  int32_t blockX;
  int32_t blockY;
  int32_t blockZ;
  int32_t staticSharedMemory;
  int32_t dynamicSharedMemory;
  uint32_t localMemoryPerThread;
  uint32_t localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char *name;
  void *reserved0;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launchType;
  uint8_t isSharedMemoryCarveoutRequested;
  uint8_t sharedMemoryCarveoutRequested;
  uint8_t padding;
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;
  uint32_t shmemLimitConfig;
  uint32_t graphId;
} CUpti_ActivityKernel9;

typedef struct CUPTI_RECORD
{
  CUpti_ActivityKind kind;
  uint32_t cbid;
  uint64_t start;
  uint64_t end;
  uint32_t processId;
  uint32_t threadId;
  uint32_t correlationId;
  uint32_t returnValue;
} CUpti_ActivityAPI;

typedef struct CUPTI_RECORD
{
  CUpti_ActivityKind kind;
  CUpti_ExternalCorrelationKind externalKind;
  uint64_t externalId;
  uint32_t correlationId;
  uint32_t reserved;
} CUpti_ActivityExternalCorrelation;

typedef void (*CUpti_BuffersCallbackRequestFunc) (uint8_t **buffer, size_t *size,
                                                  size_t *maxNumRecords);
typedef void (*CUpti_BuffersCallbackCompleteFunc) (struct CUctx_st *context, uint32_t streamId,
                                                   uint8_t *buffer, size_t size, size_t validSize);
typedef uint64_t (*CUpti_TimestampCallbackFunc) (void);
