import { sendNextMail } from '../src/service/merchants/mail/transport';
import { startRounds } from './rounds';

const ROUND_MS = 1_000;

/** @returns function that ends it */
export function startSendingMail(deps: Parameters<typeof sendNextMail>[0]): () => Promise<void> {
  const round = async (signal: AbortSignal) => {
    while (!signal.aborted && (await sendNextMail(deps)));
  };
  return startRounds(ROUND_MS, round, (err) => deps.log.warn({ err }, 'mail not read'));
}
