import { type CallbackCheckDeps, createCallbackCheck } from '../../src/callbacks/verify';
import type {
  CallbackSignature,
  SignedCallback,
  VerificationFault,
} from '../../src/domain/banks/callback';

export type SenderActivities = ReturnType<typeof createSenderActivities>;

export function createSenderActivities(deps: CallbackCheckDeps) {
  const check = createCallbackCheck(deps);
  return {
    /** @returns why the sender is not verified, or null @throws UnreadableKey, to be tried again */
    checkSender: async ({
      report,
      signature,
    }: CheckSender): Promise<{ fault: VerificationFault | null }> => ({
      fault: (await check(report, signature)) ?? null,
    }),
  };
}

interface CheckSender {
  report: SignedCallback;
  signature: CallbackSignature;
}
