import { z } from 'zod';
import { LOGGED, OWN_ID } from '../logged';
import { parseDuration } from '../merchants/clock-request';
import { endpoint } from './endpoint';
import { Timestamp } from './fields';
import { SAMPLE_CREATED, SAMPLE_UPDATED } from './samples';

const SAMPLE_TARGET = '2026-04-30T12:35:12.003Z';

const Clock = z
  .object({
    object: z.literal('clock'),
    now: Timestamp.meta({ description: 'Time of the account.' }),
    offset_seconds: z.int().min(0).meta({ description: 'Seconds ahead of the real time.' }),
    state: z.enum(['standing', 'advancing']),
    target: Timestamp.nullable().meta({ description: 'Where the advance ends; null otherwise.' }),
    behind: z
      .array(z.string().register(LOGGED, OWN_ID))
      .meta({ description: 'Resources and events that did not finish what was due.' }),
  })
  .meta({ id: 'Clock' });

const DURATION_LENGTH_MAX = 20;
// A transformation would take the examples out of the OpenAPI document.
const Duration = z
  .string()
  .refine(
    (text) => (parseDuration(text) ?? 0) > 0,
    'must be an ISO 8601 duration in days, hours, minutes or seconds, such as P60D',
  )
  .meta({ format: 'duration', examples: ['P60D'] })
  .register(LOGGED, { shows: (text) => text.length <= DURATION_LENGTH_MAX });

const Time = z.iso.datetime({ offset: true }).meta({ examples: [SAMPLE_TARGET] });

/** @see docs/api.md#sandbox-clock */
export const getClock = endpoint({
  method: 'get',
  path: '/v1/sandbox/clock',
  operation: 'getClock',
  summary: 'Time of the sandbox account',
  description: 'Sandbox keys only.',
  scope: null,
  sandboxOnly: true,
  query: z.strictObject({}),
  success: {
    status: 200,
    description: 'The clock.',
    schema: Clock,
    example: {
      ...{ object: 'clock', now: SAMPLE_CREATED, offset_seconds: 0 },
      ...{ state: 'standing', target: null, behind: [] },
    },
  },
});

export const advanceClock = endpoint({
  method: 'post',
  path: '/v1/sandbox/clock',
  operation: 'advanceClock',
  summary: 'Move the time of the sandbox account forward',
  description:
    'Sandbox keys only. Everything that waits in this account, and in no other, happens in order: ' +
    'payments expire, refund windows close, webhooks are retried. Ask `GET` until it is `standing`.',
  scope: 'sandbox:write',
  sandboxOnly: true,
  body: z
    .strictObject({ advance: Duration.optional(), to: Time.optional() })
    .refine(({ advance, to }) => (advance === undefined) !== (to === undefined), {
      path: ['advance'],
      message: 'send either advance or to',
    })
    .meta({ examples: [{ advance: 'P60D' }] }),
  success: {
    status: 202,
    description: 'The clock, which begins to advance.',
    schema: Clock,
    example: {
      ...{ object: 'clock', now: SAMPLE_UPDATED, offset_seconds: 0 },
      ...{ state: 'advancing', target: SAMPLE_TARGET, behind: [] },
    },
  },
  codes: ['clock_advancing', 'clock_too_busy'],
});

export const stopClock = endpoint({
  method: 'delete',
  path: '/v1/sandbox/clock',
  operation: 'stopClock',
  summary: 'Stop the time of the sandbox account where it is',
  description:
    'Sandbox keys only. Ends an advance before its target; a clock that stands stays as it is. Safe to repeat.',
  scope: 'sandbox:write',
  sandboxOnly: true,
  success: {
    status: 200,
    description: 'The clock, which stands.',
    schema: Clock,
    example: {
      ...{ object: 'clock', now: SAMPLE_UPDATED, offset_seconds: 86_400 },
      ...{ state: 'standing', target: null, behind: [] },
    },
  },
});
