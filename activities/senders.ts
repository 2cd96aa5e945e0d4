import { createSenderCheck, type SenderCheckDeps } from '../src/connectors/senders';
import type { CallbackMac, SenderFault, ToldCallback } from '../src/domain/callback-mac';

export type SenderActivities = ReturnType<typeof createSenderActivities>;

/** Looks at who sends callbacks; they write nothing. */
export function createSenderActivities(deps: SenderCheckDeps) {
  const check = createSenderCheck(deps);
  return {
    /** Reason why the sender is not known; null when it is. @throws UnreadableKey, to be tried again */
    checkSender: async ({ told, mac }: CheckSender): Promise<{ fault: SenderFault | null }> => ({
      fault: (await check(told, mac)) ?? null,
    }),
  };
}

interface CheckSender {
  told: ToldCallback;
  mac: CallbackMac;
}
