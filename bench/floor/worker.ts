import { Client } from '@temporalio/client';
import { bundleWorkflowCode, Worker } from '@temporalio/worker';
import { createLogger } from '../../src/base/log';
import { connectMongo } from '../../src/base/mongo';
import { exitAfter, listenForStop } from '../../src/base/process';
import { temporalAccess } from '../../src/temporal/access';
import { connectNative, installRuntime } from '../../src/temporal/native';
import { createFloorActivities } from './activities';
import { readFloorConfig } from './config';
import { FLOOR_POST_QUEUE, FLOOR_QUEUE } from './contract';

/** Options of `worker/create-worker.ts`, so that only the work differs. */
const SHARED = {
  shutdownGraceTime: '1s',
  shutdownForceTime: '2s',
  stickyQueueScheduleToStartTimeout: '2s',
  maxCachedWorkflows: 1_000,
} as const;

async function main(): Promise<void> {
  const log = createLogger('floor-worker', 'warn');
  const stopBy = listenForStop(log);
  const config = readFloorConfig();
  const access = temporalAccess(process.env);
  const { namespace } = access;
  await installRuntime(log, true);
  const mongo = await connectMongo(config.MONGODB_URI, 'floor-worker');
  const connection = await connectNative(access);
  const activities = createFloorActivities({
    db: mongo.db(config.FLOOR_DB),
    temporal: new Client({ connection, namespace }),
    receiverUrl: config.FLOOR_RECEIVER_URL,
  });
  const workflowBundle = await bundleWorkflowCode({
    workflowsPath: require.resolve('./workflows'),
  });
  const common = { ...SHARED, connection, namespace, workflowBundle, activities };
  const workers = await Promise.all([
    Worker.create({
      ...common,
      taskQueue: FLOOR_QUEUE,
      maxConcurrentActivityTaskExecutions: 50,
      maxConcurrentLocalActivityExecutions: 50,
    }),
    Worker.create({
      ...common,
      taskQueue: FLOOR_POST_QUEUE,
      maxConcurrentActivityTaskExecutions: 200,
    }),
  ]);
  stopBy(async () => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  });
  await Promise.all(workers.map((worker) => worker.run()));
  await connection.close();
  await mongo.close();
}

exitAfter(main());
