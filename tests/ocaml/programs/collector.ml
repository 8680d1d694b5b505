(* Work for the garbage collector, of all kinds: bursts that are promoted, garbage, large blocks, finalisers that allocate,
   and collections that the program asks for. At the end it tells what the runtime has counted. *)

type tree = Leaf | Node of tree * int * tree

let rec build depth = if depth = 0 then Leaf else Node (build (depth - 1), depth, build (depth - 1))
let rec burn n acc = if n = 0 then acc else burn (n - 1) (string_of_int n :: acc)
let kept = ref []
let finalised = ref 0

let finalise block =
  Gc.finalise
    (fun _ ->
      incr finalised;
      ignore (Sys.opaque_identity (burn 100 [])))
    block

let round n =
  kept := build 14 :: (if n mod 4 = 0 then [] else !kept);
  for _ = 1 to 20 do
    ignore (Sys.opaque_identity (burn 2_000 []))
  done;
  ignore (Sys.opaque_identity (Array.make 100_000 n));
  for i = 1 to 50 do
    finalise (ref i)
  done

let () =
  for n = 1 to 12 do
    round n
  done;
  Gc.full_major ();
  round 13;
  Gc.major ();
  round 14;
  Gc.compact ();
  Gc.full_major ();
  round 15;
  Gc.minor ();
  ignore (Gc.major_slice 0);
  let minor, promoted, major = Gc.counters () in
  let stat = Gc.quick_stat () in
  Printf.eprintf "truth: words %.0f %.0f %.0f\n" minor promoted major;
  Printf.eprintf "truth: collections %d %d %d\n" stat.Gc.minor_collections stat.Gc.major_collections
    stat.Gc.compactions;
  Printf.eprintf "truth: finalised %d\n" !finalised;
  print_endline "done"
