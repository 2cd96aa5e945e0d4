import type { Logger } from '../../src/base/log';
import { isDisputeClosed } from '../../src/domain/dispute/dispute';
import { Evidence } from '../../src/domain/dispute/evidence';
import type { Encrypter } from '../../src/encryption/encrypter';
import type { DisputeStore } from '../../src/store/disputes';
import { evidenceOwner } from '../../src/store/disputes';

interface EvidenceDeps {
  disputes: Pick<DisputeStore, 'get'>;
  encrypter: Pick<Encrypter, 'decrypt'>;
  connector: string;
  log: Pick<Logger, 'info'>;
  now: () => Date;
}

/** Error of evidence whose deadline is over. Answer `refused` with this refusal. */
export class EvidenceTooLate extends Error {
  override readonly name: string = 'EvidenceTooLate';
  readonly refusal: { code: string; message: string } = {
    code: 'dispute_closed',
    message: 'Its deadline was over before the bank could be reached.',
  };

  constructor() {
    super('The evidence is too late.');
  }
}

/**
 * Decrypts the evidence for the activity that sends it. It must never enter a result, a log line or
 * an error.
 * @returns function of a dispute id, which throws EvidenceTooLate, DecryptionError, or Error if the
 *   dispute is not this connector's, or has none
 */
export function createEvidenceDecrypter(deps: EvidenceDeps) {
  const { disputes, encrypter, connector, log, now } = deps;
  return async (dispute_id: string): Promise<Evidence> => {
    const dispute = await disputes.get(dispute_id);
    if (dispute === null) throw new Error('There is no such dispute.');
    if (dispute.connector !== connector || isDisputeClosed(dispute.status)) {
      throw new Error('The dispute is not one that this connector has to answer.');
    }
    const { evidence_due_at: due } = dispute;
    if (due !== null && now().getTime() >= Date.parse(due)) throw new EvidenceTooLate();
    const { ciphertext = null } = dispute.evidence ?? {};
    if (ciphertext === null) throw new Error('The evidence is erased.');
    log.info({ dispute_id }, 'evidence opened');
    const text = await encrypter.decrypt(ciphertext, evidenceOwner(dispute_id));
    try {
      return Evidence.parse(JSON.parse(text));
    } catch {
      // The parser's own error would quote it.
      throw new Error('The evidence is not what this version writes.');
    }
  };
}
