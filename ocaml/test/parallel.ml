(* Records domains that are spawned after the start: parallel.exe FILE *)

let rec burn n acc = if n = 0 then acc else burn (n - 1) ((n, n) :: acc)

let work share =
  let before = Gc.minor_words () in
  for _ = 1 to share * 50 do
    ignore (Sys.opaque_identity (burn 1_000 []))
  done;
  Gc.minor_words () -. before

(* Callbacks allocate, too: what is true is what is allocated without them. *)
let shares = [ 1; 2; 3; 4 ]
let expected = List.map work shares

(* A domain that ends before the next one begins leaves it its number: they begin together. *)
let all_there = Atomic.make false

let together share =
  while not (Atomic.get all_there) do
    Domain.cpu_relax ()
  done;
  work share

let () =
  let tracer = Heapline.start_tracing ~context:None ~sampling_rate:0.01 ~filename:Sys.argv.(1) in
  let others = List.map (fun share -> Domain.spawn (fun () -> together share)) (List.tl shares) in
  Atomic.set all_there true;
  ignore (work (List.hd shares));
  List.iter (fun d -> ignore (Domain.join d)) others;
  Heapline.stop_tracing tracer;
  List.iter (fun words -> Printf.eprintf "truth: words %.0f\n" words) expected
