import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import getRawBody from 'raw-body';
import { z } from 'zod';
import type { Logger } from '../../src/base/log';
import { verifySignature } from '../../src/webhooks/attempt';
import { ACTIVITIES, type ActivityName } from '../contract/schemas';
import { type AnswerBook, lookUpAnswer, takeAnswer } from './book';
import {
  AnswerLost,
  closeSession,
  type InstructionDeps,
  lookUpPayout,
  lookUpRefund,
  openSession,
  reversePayment,
  sendPayout,
  sendRefund,
  voidPayment,
} from './instructions';
import { handOut } from './reports';

export interface BankApiDeps extends InstructionDeps {
  secret: string;
  answers: AnswerBook;
  now: () => Date;
  log: Logger;
}

/** Request of the connector; `assertAwaited` throws once the connector has given up. */
interface Call<I> {
  input: I;
  assertAwaited: () => void;
}

const BODY_BYTES_MAX = 65_536;
/** A send that is older may have been cancelled. */
const SIGNED_SECONDS_MAX = 25;

const Delivered = z.object({ ids: z.array(z.string()) });

/**
 * Creates the API over which the bank gets instructions, as any bank over HTTP, and hands out reports.
 * @see docs/connectors.md#instructions-over-http
 */
export function createBankApi(deps: BankApiDeps): Koa {
  const router = new Router();
  const serve = <I>(path: string, schema: z.ZodType<I>, run: (call: Call<I>) => Promise<object>) =>
    router.post(path, async (ctx) => {
      const text = await getRawBody(ctx.req, { limit: BODY_BYTES_MAX, encoding: 'utf8' });
      const isSigned = verifySignature({
        ...{ header: ctx.get('Service-Signature'), body: text, secret: deps.secret },
        now: deps.now().getTime() / 1_000,
        toleranceSeconds: SIGNED_SECONDS_MAX,
      });
      if (!isSigned) throw new Error('The instruction is not signed, or too old.');
      const input = schema.parse(JSON.parse(text));
      const answer = await run({ input, assertAwaited: () => assertAwaited(ctx) });
      const { outcome } = Object(answer);
      ctx.status = outcome === 'declined' || outcome === 'refused' ? 422 : 200;
      ctx.body = answer;
    });
  const instruct = <I>(
    name: ActivityName,
    { instruction }: { instruction: z.ZodType<I> },
    run: (call: Call<I>) => Promise<object>,
  ) => serve(`/instructions/${name}`, instruction, run);

  instruct('openSession', ACTIVITIES.openSession, ({ input }) => openSession(deps, input));
  instruct('closeSession', ACTIVITIES.closeSession, ({ input }) => closeSession(deps, input));
  instruct('voidPayment', ACTIVITIES.voidPayment, ({ input }) => voidPayment(deps, input));
  instruct('reversePayment', ACTIVITIES.reversePayment, (call) => reversePayment(deps, call));
  instruct('sendRefund', ACTIVITIES.sendRefund, (call) => sendRefund(deps, call));
  instruct('lookUpRefund', ACTIVITIES.lookUpRefund, ({ input }) => lookUpRefund(deps, input));
  instruct('sendPayout', ACTIVITIES.sendPayout, (call) => sendPayout(deps, call));
  instruct('lookUpPayout', ACTIVITIES.lookUpPayout, ({ input }) => lookUpPayout(deps, input));
  // Every payout that has arrived is executed.
  instruct('cancelPayout', ACTIVITIES.cancelPayout, async () => ({ outcome: 'too_late' }));
  instruct('submitEvidence', ACTIVITIES.submitEvidence, (call) => takeAnswer(deps, call));
  instruct('lookUpEvidence', ACTIVITIES.lookUpEvidence, ({ input }) => lookUpAnswer(deps, input));
  instruct('acceptDispute', ACTIVITIES.acceptDispute, (call) => takeAnswer(deps, call));
  instruct('lookUpAcceptance', ACTIVITIES.lookUpAcceptance, ({ input }) =>
    lookUpAnswer(deps, input),
  );
  serve('/reports', z.object({}), () => handOut(deps));
  serve('/reports/delivered', Delivered, async ({ input }) => {
    await deps.outbox.finish(input.ids, 'sent');
    return {};
  });

  const app = new Koa();
  app.use(async (ctx, next) => {
    try {
      await next();
    } catch (err) {
      ctx.status = 500;
      if (!(err instanceof AnswerLost)) {
        deps.log.error({ err, path: ctx.path }, 'the bank did not execute an instruction');
      }
    }
  });
  app.use(router.routes());
  return app;
}

/** @throws Error if nobody waits for the answer, and may learn that nothing arrived */
function assertAwaited({ req }: Pick<Context, 'req'>): void {
  if (req.socket.destroyed) throw new Error('Nobody waits for the answer: nothing is done.');
}
