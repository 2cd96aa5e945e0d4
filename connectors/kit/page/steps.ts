import { AsyncLocalStorage } from 'node:async_hooks';
import type { z } from 'zod';
import type { Logger } from '../../../src/base/log';
import type { RecipientDetails } from '../../../src/domain/payout/recipient';
import type { ConnectorActivities } from '../../contract/activities';
import { BankFailure, type CallBank, parseJson } from '../bank-client';
import { type Poll, type Report, type Settings, type Webhook, WebhookRefused } from '../definition';
import { type DeliverReports, groupByResource } from '../reports';
import {
  buildInstruction,
  buildRefused,
  buildReported,
  type Fields,
  nameError,
  type Recording,
  type Step,
} from './build';

export const STEPS_MAX = 200;

interface StepDeps {
  now: () => Date;
  log: Pick<Logger, 'warn'>;
}

export type StepLog = ReturnType<typeof createStepLog>;

/**
 * Logs what a connector of the sandbox does, and changes nothing: what cannot be shown is left out.
 */
export function createStepLog({ now, log }: StepDeps) {
  const steps: Step[] = [];
  const current = new AsyncLocalStorage<Recording>();
  const origins = new WeakMap<readonly Report[], { source: string; recording: Recording }>();
  const begin = (): Recording => ({ raw: [], personal: [] });
  const add = (build: () => Omit<Step, 'at'>): void => {
    try {
      steps.unshift({ at: now(), ...build() });
      steps.length = Math.min(steps.length, STEPS_MAX);
    } catch (error) {
      log.warn({ code: nameError(error) }, 'a step cannot be shown');
    }
  };
  return {
    list: (): readonly Step[] => steps,

    watchActivities: (activities: Partial<ConnectorActivities>): Partial<ConnectorActivities> => {
      const watch = (source: string, run: (input: Fields) => Promise<Fields>) => {
        return async (input: Fields): Promise<Fields> => {
          const recording = begin();
          const end = (answer: Fields, failure: string | null) =>
            add(() => buildInstruction(source, input, { answer, failure, recording }));
          try {
            const answer = await current.run(recording, () => run(input));
            end(answer, null);
            return answer;
          } catch (error) {
            end({}, nameError(error));
            throw error;
          }
        };
      };
      const watched = Object.entries(activities).map(([source, activity]) => [
        source,
        watch(source, activity as never),
      ]);
      return Object.fromEntries(watched);
    },

    watchCall:
      (call: CallBank): CallBank =>
      async (request, answers) => {
        const { method = 'GET', url, json, text } = request;
        const sent = json ?? (text === undefined ? undefined : parseJson(text));
        const { raw } = current.getStore() ?? begin();
        const schemas: Record<number, z.ZodType> = answers;
        try {
          const answer = await call(request, answers);
          const { status, body: received } = answer;
          raw.push({
            ...{ method, url, sent, received, status: String(status) },
            schema: schemas[Number(status)],
          });
          return answer;
        } catch (error) {
          // The kit’s own messages quote nothing.
          const status = error instanceof BankFailure ? error.message : nameError(error);
          raw.push({ method, url, sent, status });
          throw error;
        }
      },

    watchRecipient:
      (decrypt: (payout_id: string) => Promise<RecipientDetails>) =>
      async (payout_id: string): Promise<RecipientDetails> => {
        const details = await decrypt(payout_id);
        const { type: _type, country: _country, ...personal } = details;
        const words = Object.values(personal).flatMap((word) => word?.toLowerCase() ?? []);
        current.getStore()?.personal.push(...words);
        return details;
      },

    watchWebhook: <S extends Settings>(webhook: Webhook<S>): Webhook<S> => ({
      ...webhook,
      read: async (request, tools) => {
        const recording = begin();
        const { path: url } = webhook;
        const sent = parseJson(request.body.toString());
        recording.raw.push({ method: 'webhook POST', url, sent, status: 'received' });
        try {
          const reports = await current.run(recording, () => webhook.read(request, tools));
          origins.set(reports, { source: 'webhook', recording });
          return reports;
        } catch (error) {
          const status = error instanceof WebhookRefused ? ` ${error.status}` : '';
          add(() => buildRefused(`${nameError(error)}${status}`));
          throw error;
        }
      },
    }),

    watchPoll: <S extends Settings>(poll: Poll<S>): Poll<S> => ({
      ...poll,
      read: async (cursor, tools) => {
        const recording = begin();
        const page = await current.run(recording, () => poll.read(cursor, tools));
        origins.set(page.reports, { source: 'poll', recording });
        return page;
      },
    }),

    watchDelivery:
      (deliver: DeliverReports): DeliverReports =>
      async (reports) => {
        const { source = 'poll', recording = begin() } = origins.get(reports) ?? {};
        let failure: string | null = null;
        let parked: readonly Report[] = [];
        try {
          parked = await deliver(reports);
          return parked;
        } catch (error) {
          failure = nameError(error);
          throw error;
        } finally {
          for (const group of groupByResource(reports)) {
            add(() => buildReported(source, group, { failure, recording, parked }));
          }
        }
      },
  };
}
