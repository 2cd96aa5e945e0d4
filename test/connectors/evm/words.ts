import * as Mnemonic from 'ox/Mnemonic';
import { HDKey } from 'viem/accounts';

/** Words of a test vector of BIP-39: another wallet than the node's own accounts. */
export const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow';

/** Account of those words, whose public key a shop would hand out. */
export const ACCOUNT = HDKey.fromMasterSeed(Mnemonic.toSeed(WORDS)).derive("m/44'/60'/0'");
