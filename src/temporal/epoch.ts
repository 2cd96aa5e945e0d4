import { type Client, ScheduleAlreadyRunning, ScheduleNotFoundError } from '@temporalio/client';
import { ServiceError } from '../domain/errors';
import { describeOtherFormat, FORMAT, NEW_DATABASE } from '../domain/format';
import { AUDIT_WORKFLOW } from '../domain/operators/audit-log';
import { isDenied } from './deadline';

const CALL_MS_MAX = 10_000;
const NOTE = 'Epoch of MongoDB, which the workers write each minute. Do not change it.';
const FORMAT_NOTE = `format ${FORMAT} of the data of these task queues. Do not change it.`;
const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/;

/** Stores the epoch and the format as notes on schedules that never run. */
export function createTemporalEpoch(temporal: Client, lifecycleQueue: string) {
  /** Serves all databases: workers would continue the workflows of another one. */
  const formatId = `service-format:${lifecycleQueue}`;
  const getId = (installation: string) => `service-epoch:${lifecycleQueue}:${installation}`;
  const inTime = <T>(call: () => Promise<T>) =>
    temporal.withDeadline(Date.now() + CALL_MS_MAX, call);
  const readNote = (scheduleId: string): Promise<string | undefined> =>
    inTime(async () => {
      try {
        const { state } = await temporal.schedule.getHandle(scheduleId).describe();
        return state.note ?? '';
      } catch (error) {
        if (error instanceof ScheduleNotFoundError) return undefined;
        throw error;
      }
    });
  return {
    /** @returns undefined when Temporal has none, as after its own restore */
    read: async (installation: string): Promise<string | undefined> =>
      TIME.exec((await readNote(getId(installation))) ?? '')?.[0],
    /**
     * @param isWriter notes the format where there is none
     * @throws ServiceError `other_format`
     */
    checkFormat: async ({ isWriter = false } = {}): Promise<void> => {
      try {
        const note = await readNote(formatId);
        if (note !== undefined) assertFormat(note);
        else if (isWriter) {
          await inTime(() => create(formatId, { paused: true, note: FORMAT_NOTE }));
        }
      } catch (error) {
        // A connector may have no permission: it reads the format in MongoDB.
        if (!isDenied(error)) throw error;
      }
    },
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

  function assertFormat(note: string): void {
    const digits = /format (\d+)/.exec(note)?.[1];
    const found = digits === undefined ? undefined : Number(digits);
    if (found === FORMAT) return;
    const place = `The namespace ${temporal.options.namespace} of Temporal`;
    throw new ServiceError('other_format', describeOtherFormat(place, found, NEW_DATABASE));
  }

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
