import { runConnector } from '../kit';
import { example } from './example';

runConnector(example);
