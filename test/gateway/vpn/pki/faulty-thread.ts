/**
 * The pool's own thread, with faults. They listen first, and both do before the first message:
 * nothing here waits.
 */
import './faults.ts';
import '../../../../gateway/vpn/pki/worker.ts';
