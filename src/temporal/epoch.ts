import { type Client, ScheduleAlreadyRunning, ScheduleNotFoundError } from '@temporalio/client';
import { AUDIT_WORKFLOW } from '../domain/audit';

const CALL_MS_MAX = 10_000;
const NOTE = 'Epoch of MongoDB, which the workers write each minute. Do not change it.';
const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/;

/** Stores the epoch as a note on a schedule that never runs. */
export function createTemporalEpoch(temporal: Client, lifecycleQueue: string) {
  const getId = (installation: string) => `service-epoch:${lifecycleQueue}:${installation}`;
  const inTime = <T>(call: () => Promise<T>) =>
    temporal.withDeadline(Date.now() + CALL_MS_MAX, call);
  return {
    /** @returns undefined when Temporal has none, as after its own restore */
    read: (installation: string): Promise<string | undefined> =>
      inTime(async () => {
        try {
          const { state } = await temporal.schedule.getHandle(getId(installation)).describe();
          return TIME.exec(state.note ?? '')?.[0];
        } catch (error) {
          if (error instanceof ScheduleNotFoundError) return undefined;
          throw error;
        }
      }),
    write: (installation: string, at: string): Promise<void> =>
      inTime(async () => {
        const state = { paused: true, note: `${at}: ${NOTE}` };
        const scheduleId = getId(installation);
        try {
          const handle = temporal.schedule.getHandle(scheduleId);
          await handle.update((schedule) => ({
            ...schedule,
            state: { ...schedule.state, ...state },
          }));
        } catch (error) {
          if (!(error instanceof ScheduleNotFoundError)) throw error;
          await create(scheduleId, state);
        }
      }),
  };

  async function create(scheduleId: string, state: { paused: boolean; note: string }) {
    const action = {
      type: 'startWorkflow' as const,
      workflowType: AUDIT_WORKFLOW,
      workflowId: `${scheduleId}:never`,
      taskQueue: lifecycleQueue,
      args: [],
    };
    try {
      await temporal.schedule.create({ scheduleId, spec: {}, action, state });
    } catch (error) {
      // Another worker was faster; this one writes the next minute.
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
  }
}
