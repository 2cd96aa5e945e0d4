/** The one place where the docs load workflows: what operators see, and what they can do. */
import { ACTS as cryptoPaymentActs } from '../../workflows/crypto-payment/acts';
import { VIEW as cryptoPaymentView } from '../../workflows/crypto-payment/life';
import { messages as cryptoPayment } from '../../workflows/crypto-payment/messages';
import { ACTS as cryptoSettlementActs } from '../../workflows/crypto-settlement/acts';
import { VIEW as cryptoSettlementView } from '../../workflows/crypto-settlement/life';
import { messages as cryptoSettlement } from '../../workflows/crypto-settlement/messages';
import { ACTS as paymentActs } from '../../workflows/payment/acts';
import { VIEW as paymentView } from '../../workflows/payment/life';
import { messages as payment } from '../../workflows/payment/messages';
import { ACTS as payoutActs } from '../../workflows/payout/acts';
import { VIEW as payoutView } from '../../workflows/payout/life';
import { messages as payout } from '../../workflows/payout/messages';
import { ACTS as refundActs } from '../../workflows/refund/acts';
import { VIEW as refundView } from '../../workflows/refund/life';
import { messages as refund } from '../../workflows/refund/messages';

interface Texts {
  /** Words that the page of a resource shows beside each mark. */
  cures: Readonly<Record<string, string>>;
  /** States in which each act of an operator is possible. */
  acts: Readonly<Record<string, { from: readonly string[] }>>;
  /** Words that the Temporal UI shows beside each message. */
  descriptions: Readonly<Record<string, string>>;
}

type Kind = 'payment' | 'refund' | 'payout' | 'crypto-payment' | 'crypto-settlement';

export const TEXTS: Readonly<Record<Kind, Texts>> = {
  payment: { cures: paymentView.cures, acts: paymentActs, descriptions: payment.descriptions },
  refund: { cures: refundView.cures, acts: refundActs, descriptions: refund.descriptions },
  payout: { cures: payoutView.cures, acts: payoutActs, descriptions: payout.descriptions },
  'crypto-payment': {
    cures: cryptoPaymentView.cures,
    acts: cryptoPaymentActs,
    descriptions: cryptoPayment.descriptions,
  },
  'crypto-settlement': {
    cures: cryptoSettlementView.cures,
    acts: cryptoSettlementActs,
    descriptions: cryptoSettlement.descriptions,
  },
};
