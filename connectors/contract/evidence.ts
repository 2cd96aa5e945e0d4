import { z } from 'zod';
import type { Logger } from '../../src/base/log';
import { isDisputeClosed } from '../../src/domain/dispute/dispute';
import type { Encrypter } from '../../src/encryption/encrypter';
import type { DisputeStore } from '../../src/store/disputes';
import { evidenceOwner } from '../../src/store/disputes';

const optional = z.string().nullable();

/** Statement of a merchant about a dispute. */
export const Evidence = z.object({
  explanation: z.string(),
  customer_reference: optional,
  shipped_at: optional.meta({ description: 'ISO 8601.' }),
  carrier: optional,
  tracking_number: optional,
  refund_reference: optional,
});
export type Evidence = z.infer<typeof Evidence>;

interface EvidenceDeps {
  disputes: Pick<DisputeStore, 'get'>;
  encrypter: Pick<Encrypter, 'decrypt'>;
  connector: string;
  log: Pick<Logger, 'info'>;
}

/**
 * Decrypts the evidence for the activity that sends it. It must never enter a result, a log line or
 * an error.
 * @returns function of a dispute id, which throws DecryptionError, or Error if the dispute is not
 *   this connector's, or has none
 */
export function createEvidenceDecrypter({ disputes, encrypter, connector, log }: EvidenceDeps) {
  return async (dispute_id: string): Promise<Evidence> => {
    const dispute = await disputes.get(dispute_id);
    if (dispute === null) throw new Error('There is no such dispute.');
    if (dispute.connector !== connector || isDisputeClosed(dispute.status)) {
      throw new Error('The dispute is not one that this connector has to answer.');
    }
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
