(* Four domains that live as long as the program and allocate in the proportion 1 : 2 : 3 : 4. Each
   says how many words it allocated. *)

let rec burn n acc = if n = 0 then acc else burn (n - 1) (string_of_int n :: acc)

let work share =
  let before = Gc.minor_words () in
  for _ = 1 to share * 60 do
    ignore (Sys.opaque_identity (burn 1_000 []))
  done;
  ((Domain.self () :> int), Gc.minor_words () -. before)

(* A domain that ends before the next one begins leaves it its number: they begin together. *)
let all_there = Atomic.make false

let together share =
  while not (Atomic.get all_there) do
    Domain.cpu_relax ()
  done;
  work share

let () =
  let others = List.map (fun share -> Domain.spawn (fun () -> together share)) [ 2; 3; 4 ] in
  Atomic.set all_there true;
  let own = work 1 in
  List.iter
    (fun (id, words) -> Printf.eprintf "truth: domain %d words %.0f\n" id words)
    (own :: List.map Domain.join others);
  print_endline "done"
